// Dead letters: what could not be routed, by reason, with what it held, sent again or dropped.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {DeadLetter, DeadLetters, DeadReasons, Job, Settled} from './api';
import {get, post, Refused} from './client';
import {useLoad} from './load';
import {Problem} from './notice';
import {Text} from './shown';
import {texts} from './texts';
import {bytes, longTime, number} from './time';
import {Typed} from './typed';

type Reason = DeadReasons['reasons'][number];
type Done = {text: string; bad: boolean};
const shown = 20; // letters of a reason
const maxPayload = 65536; // characters of one that are drawn
const lookAgain = 500; // milliseconds between two looks at a job

export function DeadCard(): JSX.Element {
  const all = useLoad('dead', (signal) => get<DeadReasons>('v1/dead/reasons', {}, signal));
  const [open, setOpen] = useState('');
  const [done, setDone] = useState<Done>();
  const may = !(all.error instanceof Refused && (all.error.status === 401 || all.error.status === 403));
  const reasons = all.value?.reasons ?? [];
  return (
    <section class="card" aria-label={texts.dead.name}>
      <h2>{texts.dead.name}</h2>
      {!may ? <p class="faint">{texts.dead.mayNot}</p>
        : all.error && !all.value ? <Problem error={all.error} again={all.again} />
        : all.value && !reasons.length ? <p class="faint">{texts.dead.none}</p>
        : reasons.map((r) => {
          const key = r.topic + ' ' + r.reason;
          return (
            <div key={key}>
              <button class="ghost row reason" aria-expanded={open === key} onClick={() => setOpen(open === key ? '' : key)}>
                <b>{r.topic}</b> <span>{r.reason}</span> <span class="faint">{texts.dead.held(number(r.letters), number(r.events))}</span>
              </button>
              {open === key && <ReasonView reason={r} done={(d) => { setDone(d); setOpen(''); all.again(); }} />}
            </div>
          );
        })}
      {done && <p class={done.bad ? 'bad' : 'good'} role="status"><Text text={done.text} line /></p>}
    </section>
  );
}

function ReasonView({reason, done}: {reason: Reason; done: (d: Done) => void}): JSX.Element {
  const of = {topic: reason.topic, reason: reason.reason};
  const letters = useLoad(reason.topic + ' ' + reason.reason, (signal) => get<DeadLetters>('v1/dead', {...of, limit: shown}, signal));
  const [asking, setAsking] = useState<'retry' | 'drop'>();
  const held = letters.value?.dead ?? [];
  return (
    <div class="shard-card">
      <div class="row">
        <button class="button small" aria-pressed={asking === 'retry'} onClick={() => setAsking('retry')}>{texts.dead.retry}</button>
        <button class="button small" aria-pressed={asking === 'drop'} onClick={() => setAsking('drop')}>{texts.dead.drop}</button>
        <span class="faint">{held.length < reason.letters ? texts.dead.first(number(held.length), number(reason.letters)) : ''}</span>
      </div>
      {asking && <Confirm key={asking} what={asking} reason={reason} done={done} />}
      {letters.error && <Problem error={letters.error} again={letters.again} />}
      {held.map((l) => <Letter key={l.id} letter={l} />)}
    </div>
  );
}

/** Letter is one of them. What it holds is asked for when it is opened, as a list has no payloads. */
function Letter({letter: l}: {letter: DeadLetter}): JSX.Element {
  const [open, setOpen] = useState(false);
  const whole = useLoad(String(open), open ? (signal) => get<DeadLetter>(`v1/dead/${encodeURIComponent(l.id)}`, {}, signal) : undefined);
  return (
    <article class="letter">
      <div class="row faint"><code>{l.id}</code> <span>{longTime(Date.parse(l.at))}</span> <code>{l.subject}</code> <button class="button small" aria-expanded={open} onClick={() => setOpen(!open)}>{texts.dead.payload} {bytes(l.bytes)}</button></div>
      <p><Text text={l.detail} /></p>
      {open && whole.error && <Problem error={whole.error} again={whole.again} />}
      {open && whole.value && <pre class="whole"><Text text={payload(whole.value.payload ?? '')} /></pre>}
    </article>
  );
}

/** payload is what a letter holds, as text. */
function payload(base64: string): string {
  const text = new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
  return text.length > maxPayload ? text.slice(0, maxPayload) + '\u2026' : text;
}

/** Confirm does it once the reason is typed. */
function Confirm({what, reason, done}: {what: 'retry' | 'drop'; reason: Reason; done: (d: Done) => void}): JSX.Element {
  const [busy, setBusy] = useState('');
  const [error, setError] = useState<Error>();
  const run = async () => {
    setBusy(texts.loading);
    setError(undefined);
    try {
      let job = await post<Job>(`v1/dead/${what}`, {topic: reason.topic, reason: reason.reason});
      while (job.state === 'queued' || job.state === 'running') {
        setBusy(job.progress || job.state);
        await new Promise((next) => setTimeout(next, lookAgain));
        job = await get<Job>(`v1/jobs/${encodeURIComponent(job.id)}`);
      }
      const settled = job.result as Partial<Settled> | undefined;
      done(job.state === 'done' ? {bad: false, text: texts.dead.done(number(settled?.retried ?? 0), number(settled?.dropped ?? 0), number(settled?.kept ?? 0), settled?.letters?.find((l) => l.why)?.why ?? '')} : {bad: true, text: `${job.state}: ${job.error ?? ''}`});
    } catch (e) {
      setError(e as Error);
      setBusy('');
    }
  };
  return (
    <>
      <Typed label={texts.dead.confirm(what, number(reason.letters), reason.reason)} word={reason.reason} act={busy || texts.dead.go(what)} kind="small primary" busy={!!busy} run={run} />
      {error && <Problem error={error} />}
    </>
  );
}
