// A topic is changed: what is to be otherwise, what that would do, and then that it is done.
import type {JSX} from 'preact';
import {useRef, useState} from 'preact/hooks';
import type {Topic, TopicPlan, TopicRequest} from '../api';
import {get, post} from '../client';
import {Problem} from '../notice';
import {Text} from '../shown';
import {texts} from '../texts';
import {Typed} from '../typed';
import {Effect} from './effect';
import {wanted} from './wanted';

/** Planned is what was asked for, the topic as it was then, and what that would do, or did. */
type Planned = {want: TopicRequest; was: Topic; plan: TopicPlan; done?: boolean};

const w = texts.topicsPage;

export function Change({topic: t, changed}: {topic: Topic; changed: () => void}): JSX.Element {
  const [planned, setPlanned] = useState<Planned>();
  const [error, setError] = useState<Error>();
  const [busy, setBusy] = useState(false);
  // The form begins with the topic as it is, and again with each other one, but not once something was typed.
  const typed = useRef(false);
  const begun = useRef(t);
  if (!typed.current) begun.current = t;
  const b = begun.current;
  const path = 'v1/topics/' + encodeURIComponent(t.name);
  const put = (want: TopicRequest, query: Record<string, string>) => post<TopicPlan>(path, query, want, 'PUT');
  const during = async (f: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    await f().catch(setError);
    setBusy(false);
  };
  const look = (e: Event) => {
    e.preventDefault();
    const form = new FormData(e.currentTarget as HTMLFormElement);
    void during(async () => {
      setPlanned(undefined);
      const was = await get<Topic>(path); // another may have changed it since the page was loaded: that differs too, and is shown
      const want = wanted(was, form);
      setPlanned({want, was, plan: await put(want, {dry_run: 'true'})});
    });
  };
  const apply = ({want, was}: Planned, query: Record<string, string>) => during(async () => {
    if (JSON.stringify(await get<Topic>(path)) !== JSON.stringify(was)) {
      setPlanned(undefined);
      throw new Error(w.meanwhile);
    }
    setPlanned({want, was, plan: await put(want, query), done: true});
    typed.current = false;
    changed();
  });
  const text = (label: string, name: string, value: number | string | undefined, hint?: string) => (
    <label>{label}<input name={name} defaultValue={String(value || '')} placeholder={hint} inputMode={hint ? undefined : 'numeric'} spellcheck={false} autocomplete="off" /></label>
  );
  const lines = (label: string, name: string, value: string[], hint: string) => (
    <label>{label}<textarea name={name} rows={Math.min(Math.max(value.length + 1, 2), 8)} class="mono" defaultValue={value.join('\n')} placeholder={hint} spellcheck={false} autocomplete="off" /></label>
  );
  const loses = (planned?.plan.loss ?? []).length > 0;
  return (
    <>
      <form class="asked" key={JSON.stringify(b)} aria-label={w.changeOf(t.name)} onSubmit={look} onInput={() => { typed.current = true; setPlanned(undefined); setError(undefined); }}>
        <div class="pairs even">
          {text(w.keepDays, 'keep', b.keep_days)}
          {text(w.clearAfter, 'after', b.anonymise?.after_days)}
          {text(w.clearFields, 'clear', b.anonymise?.fields?.join(', '), w.usual)}
          {text(w.coldAfter, 'cold', b.cold_after_days)}
          {text(w.freshFor, 'fresh', (b.sql_fresh ?? 0) / 1e9)}
          {text(w.rotateRows, 'rows', b.rotate.rows)}
          {text(w.rotateBytes, 'bytes', b.rotate.bytes)}
          {text(w.rotateSpan, 'span', b.rotate.span / 1e9)}
        </div>
        <div class="pairs halves">
          {lines(w.rules, 'pii', (b.pii ?? []).map((p) => `${p.field}: ${p.rule}${p.grid ? ' ' + p.grid : ''}`), w.rulesHint)}
          {lines(w.more, 'fields', [], w.moreHint)}
        </div>
        <div><button class="button primary" disabled={busy}>{w.look}</button></div>
      </form>
      {error && <Problem error={error} kept={() => setError(undefined)} />}
      {planned && (
        <section class="shard-card" aria-label={w.effect(t.name)}>
          <p role="status"><b>{planned.plan.topic} {planned.plan.did}</b></p>
          <Effect was={planned.was} plan={planned.plan} />
          {planned.done || planned.plan.did === 'would stay unchanged' ? null
            : loses ? <Typed label={<>{w.confirm} <Text text={t.name} line /></>} word={t.name} act={w.apply} kind="danger" busy={busy} run={() => apply(planned, {yes: 'true'})} />
            : <button class="button primary" disabled={busy} onClick={() => apply(planned, {})}>{w.apply}</button>}
        </section>
      )}
    </>
  );
}
