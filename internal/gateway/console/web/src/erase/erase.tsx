// Erasing a person, or what a filter names: what would go, a confirmation that is typed, progress, and a record to print.
import '../core';
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {go} from '../address';
import type {Erasures, ErasurePlan, EraseRequest, Topic} from '../api';
import {get, post} from '../client';
import {useLoad} from '../load';
import {Problem} from '../notice';
import {Text} from '../shown';
import {texts} from '../texts';
import {longTime, number} from '../time';
import {Asked} from './asked';
import {Confirm} from './confirm';
import {PlanTable} from './plan';
import {Records} from './record';

/** Planned is what an erasure would take of a topic, or why it cannot be. */
export type Planned = {request: EraseRequest; plan?: ErasurePlan; error?: Error};

/** takes reports whether an erasure would take something, or may. */
export const takes = (p: Planned) => !!p.plan && (p.plan.rows > 0 || (p.plan.diffs ?? 0) > 0 || p.plan.waiting > 0 || p.plan.streams.some((s) => s.staying > 0));

export function Erase({topics, query}: {topics: Topic[]; query: Record<string, string>}): JSX.Element {
  const all = useLoad('erasures', (signal) => get<Erasures>('v1/erasures', {}, signal));
  const [planned, setPlanned] = useState<Planned[]>();
  const [chosen, choose] = useState<string[]>([]);
  const [busy, setBusy] = useState('');
  const ids = (query['erasure'] ?? '').split(',').filter(Boolean);
  if (ids.length) return <Records ids={ids} close={() => { go({query: {erasure: ''}}); all.again(); }} />;

  // One topic after the other: each count reads all of a topic.
  const look = async (requests: EraseRequest[]) => {
    const found: Planned[] = [];
    setPlanned(undefined);
    for (const request of requests) {
      setBusy(texts.erase.looking(request.topic));
      found.push(await post<ErasurePlan>('v1/erasures', {dry_run: 'true'}, request).then((plan) => ({request, plan}), (error: Error) => ({request, error})));
    }
    setBusy('');
    setPlanned(found);
    choose(found.filter(takes).map((p) => p.request.topic));
  };
  const begun = (began: string[]) => {
    setPlanned(undefined);
    go({query: {erasure: began.join(',')}});
  };
  if (all.error && !all.value) return <Problem error={all.error} again={all.again} />;
  const requests = (planned ?? []).filter((p) => p.plan && chosen.includes(p.request.topic)).map((p) => p.request);
  const rows = (planned ?? []).filter((p) => chosen.includes(p.request.topic)).reduce((sum, p) => sum + (p.plan?.rows ?? 0), 0);
  return (
    <div class="page erase">
      <h1>{texts.erase.name}</h1>
      <p class="lead">{texts.erase.lead}</p>
      <Asked topics={topics} busy={!!busy} look={look} changed={() => setPlanned(undefined)} />
      {busy && <p class="faint" role="status">{busy}</p>}
      {planned && (
        <section class="card" aria-label={texts.erase.plan}>
          <h2>{texts.erase.plan}</h2>
          <PlanTable planned={planned} chosen={chosen} choose={choose} />
          {requests.length > 0 && <Confirm key={JSON.stringify(requests)} requests={requests} rows={rows} begun={begun} />}
        </section>
      )}
      <Entered all={all.value} />
    </div>
  );
}

const shown = 100; // erasures of the list; almanac erase ls has all

function Entered({all}: {all: Erasures | undefined}): JSX.Element {
  const newest = [...(all?.erasures ?? [])].sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
  return (
    <section class="card" aria-label={texts.erase.entered}>
      <h2>{texts.erase.entered}</h2>
      {!all ? <p class="faint">{texts.loading}</p> : !newest.length ? <p class="faint">{texts.erase.none}</p> : (
        <div class="scrolled">
          <table>
            <thead><tr><th>{texts.erase.at}</th><th>{texts.topic}</th><th>{texts.erase.whom}</th><th>{texts.erase.state}</th><th class="n">{texts.erase.events}</th><th /></tr></thead>
            <tbody>
              {newest.slice(0, shown).map((e) => (
                <tr key={e.id}>
                  <td class="nowrap">{longTime(Date.parse(e.created_at))}</td>
                  <td>{e.topic}</td>
                  <td class="whom"><Text text={whom(e.users, e.where)} line /></td>
                  <td class={e.state === 'erased' ? '' : 'warned'}>{e.state}</td>
                  <td class="n">{number(e.rows)}</td>
                  <td class="n"><button class="button small" aria-label={`${texts.erase.record} ${e.id}`} onClick={() => go({query: {erasure: e.id}})}>{texts.erase.record}</button></td>
                </tr>
              ))}
            </tbody>
          </table>
          {newest.length > shown && <p class="faint">{texts.erase.more(number(newest.length))}</p>}
        </div>
      )}
    </section>
  );
}

/** whom says of whom events are, or which. */
export function whom(users: string[] | undefined, where: string | undefined): string {
  const named = (users ?? []).slice(0, 5).join(', ') + ((users?.length ?? 0) > 5 ? ` +${users!.length - 5}` : '');
  return [named, where].filter(Boolean).join(' \u00b7 ') || texts.erase.allIn;
}
