// What a change of a topic does: what differs, what goes, and whom its privacy rules reach.
import type {JSX} from 'preact';
import type {Topic, TopicPlan} from '../api';
import {Text} from '../shown';
import {texts} from '../texts';
import {bytes, longTime, number} from '../time';
import {rulesOf} from './rules';

const w = texts.topicsPage;

export function Effect({was, plan}: {was: Topic; plan: TopicPlan}): JSX.Element {
  const before = rulesOf(was);
  const differ = rulesOf(plan.now).flatMap(([name, value], i) => (value === before[i]![1] ? [] : [[name, before[i]![1], value] as const]));
  return (
    <>
      {differ.length > 0 && (
        <div class="scrolled">
          <table aria-label={w.differs}>
            <thead><tr><th>{w.differs}</th><th>{w.was}</th><th>{w.then}</th></tr></thead>
            <tbody>{differ.map(([name, old, now]) => <tr key={name}><td>{name}</td><td class="faint"><Text text={old || '\u2013'} line /></td><td><Text text={now || '\u2013'} line /></td></tr>)}</tbody>
          </table>
        </div>
      )}
      {(plan.loss ?? []).map((l) => <p key={l.step} class="bad">{w.loss(l.step, number(l.rows), number(l.shards), bytes(l.bytes), longTime(Date.parse(l.from)))}{l.exact ? '' : ' ' + w.aboutNow}</p>)}
      {(plan.sooner ?? []).length > 0 && (
        <details>
          <summary>{w.sooner}</summary>
          <div class="scrolled"><table><tbody>{plan.sooner!.map((s) => <tr key={s.shard + s.step}><td><code>{s.shard}</code></td><td>{s.step}</td><td class="nowrap">{longTime(Date.parse(s.at))}</td><td class="n">{number(s.rows)} {texts.proof.rows}</td></tr>)}</tbody></table></div>
        </details>
      )}
      {(plan.rules ?? []).map((r) => <p key={r.field} class="warned"><Text text={w.touched(r.field, r.rule, r.events_of_last_day === null ? '?' : number(r.events_of_last_day))} line /></p>)}
      {(plan.notes ?? []).map((n) => <p key={n} class="faint"><Text text={n} line /></p>)}
      {(plan.behind ?? []).map((m) => <p key={m.name} class="warned"><Text text={w.behind(m.role, m.name, m.host)} line /></p>)}
    </>
  );
}
