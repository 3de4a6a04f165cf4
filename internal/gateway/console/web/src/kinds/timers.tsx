// Timers: the groups and how their timers are, those of a group, and what became of one.
import type {JSX} from 'preact';
import {go} from '../address';
import type {Timer, TimerGroups, Timers as Answered, Topic} from '../api';
import {get, Refused} from '../client';
import {useLoad} from '../load';
import {Empty, Problem} from '../notice';
import {usePaged} from '../paged';
import {Text} from '../shown';
import {texts} from '../texts';
import {bytes, longTime, number, seconds} from '../time';
import {Choice, More, OfKind} from './controls';
import {written} from './difference';
import {Table} from './list';

type Group = TimerGroups['groups'][number];
const pageSize = 100;
const maxRows = 5000; // that the list holds
const states = ['', 'late', 'pending', 'firing', 'failed', 'done', 'cancelled'] as const;

const at = (text: string | null | undefined) => (text ? longTime(Date.parse(text)) : '\u2013');
const some = (n: number, bad = false) => <span class={n === 0 ? 'faint' : bad ? 'bad' : ''}>{number(n)}</span>;

export function TimersPage({topics, query}: {topics: Topic[]; query: Record<string, string>}): JSX.Element {
  const group = query['group'] ?? '';
  const state = query['state'] ?? '';
  const controls = group && (
    <>
      <button class="button" onClick={() => go({query: {group: '', timer: '', state: ''}})}>{texts.timers.allGroups}</button>
      <Choice label={texts.timers.state} value={state} of={states.map((s) => [s, texts.timers.states[s]!] as const)} set={(s) => go({query: {state: s, timer: ''}})} />
    </>
  );
  return (
    <OfKind topics={topics} kind="timer" asked={query['topic']} controls={controls}>
      {(topic) => (group
        ? <><List topic={topic.name} group={group} state={state} timer={query['timer'] ?? ''} />{query['timer'] && <One key={[topic.name, group, query['timer']].join('/')} topic={topic.name} group={group} id={query['timer']} />}</>
        : <Groups topic={topic.name} />)}
    </OfKind>
  );
}

function Groups({topic}: {topic: string}): JSX.Element {
  const all = useLoad(topic, (signal) => get<TimerGroups>('v1/timers', {topic}, signal));
  const groups = all.value?.groups ?? [];
  const open = (g: Group | undefined, state = '') => g && go({query: {group: g.group, state}});
  const to = (g: Group, n: number, state: string, bad = false) => (n ? <button class="link" aria-label={`${g.group}: ${n} ${texts.timers.states[state]}`} onClick={(e) => { e.stopPropagation(); open(g, state); }}>{some(n, bad)}</button> : some(0));
  return (
    <section class="results" aria-label={texts.timers.groups}>
      {all.error && !groups.length ? <Problem error={all.error} again={all.again} />
        : all.value && !groups.length ? <Empty title={texts.timers.none} hint={texts.timers.noneHint} />
        : <Table<Group> label={texts.timers.groups} rows={groups} keyOf={(g) => g.group} choose={(g) => open(g)}
          columns={[
            {name: texts.timers.group, grow: true, cell: (g) => <><b><Text text={g.group} line /></b>{g.paused && <span class="warned"> {texts.timers.paused}</span>} {g.why && <span class="warned"><Text text={g.why} line /></span>}</>},
            {name: texts.timers.states['late']!, right: true, cell: (g) => to(g, g.overdue, 'late', true)},
            {name: texts.timers.oldest, right: true, narrow: false, cell: (g) => (g.overdue ? <span class="bad">{seconds(g.oldest_overdue_seconds)}</span> : <span class="faint">{'\u2013'}</span>)},
            {name: texts.timers.states['pending']!, right: true, cell: (g) => to(g, g.pending, 'pending')},
            {name: texts.timers.states['failed']!, right: true, cell: (g) => to(g, g.failed, 'failed', true)},
            {name: texts.timers.states['firing']!, right: true, narrow: false, cell: (g) => to(g, g.firing, 'firing')},
            {name: texts.timers.states['done']!, right: true, narrow: false, cell: (g) => to(g, g.done, 'done')},
            {name: texts.timers.states['cancelled']!, right: true, narrow: false, cell: (g) => to(g, g.cancelled, 'cancelled')},
            {name: texts.timers.holds, right: true, narrow: false, cell: (g) => bytes(g.bytes)},
          ]} />}
    </section>
  );
}

function List({topic, group, state, timer}: {topic: string; group: string; state: string; timer: string}): JSX.Element {
  // Late is what is due and still waits.
  const asked = (): Record<string, string> => (state === 'late' ? {state: 'pending', due_before: new Date().toISOString()} : {state});
  const list = usePaged<Timer>([topic, group, state].join('\0'), maxRows, (cursor, signal) =>
    get<Answered>(`v1/timers/${encodeURIComponent(group)}`, {topic, ...asked(), limit: pageSize, cursor}, signal).then((a) => ({rows: a.timers, cursor: a.cursor})));
  return (
    <section class="results" aria-label={texts.timers.name}>
      <div class="list-head"><b><Text text={group} line /></b><span class="faint">{texts.timers.states[state]}</span><span class="faint end">{texts.timers.hint}</span></div>
      {list.error && !list.rows.length ? <Problem error={list.error} again={list.again} />
        : list.loaded && !list.rows.length ? <Empty title={texts.timers.noneSo} />
        : <Table<Timer> label={texts.timers.name} rows={list.rows} keyOf={(t) => t.id} open={timer} choose={(t) => go({query: {timer: t?.id ?? ''}})}
          columns={[
            {name: texts.timers.id, grow: true, cell: (t) => <code><Text text={t.id} line /></code>},
            {name: texts.timers.state, cell: (t) => <State timer={t} />},
            {name: texts.timers.due, cell: (t) => <span class="nums">{at(t.execute_at)}</span>},
            {name: texts.timers.late, right: true, narrow: false, cell: (t) => late(t)},
            {name: texts.timers.attempt, right: true, cell: (t) => number(t.attempt)},
            {name: texts.timers.answer, right: true, narrow: false, cell: (t) => t.status || ''},
            {name: texts.timers.error, narrow: false, cell: (t) => <span class="bad"><Text text={[t.error, t.detail].filter(Boolean).join(': ').slice(0, 120)} line /></span>},
          ]}
          foot={list.error ? <Problem error={list.error} again={list.more} /> : <More more={list.more} busy={list.busy} end={texts.timers.all(number(list.rows.length))} />} />}
    </section>
  );
}

const overdue = (t: Timer) => (t.state === 'pending' ? Date.now() - Date.parse(t.execute_at) : 0);

function State({timer: t}: {timer: Timer}): JSX.Element {
  const of = t.state === 'failed' || overdue(t) > 0 ? 'bad' : t.state === 'done' ? 'good' : t.state === 'cancelled' ? 'faint' : '';
  return <span class={of}>{overdue(t) > 0 ? texts.timers.states['late'] : texts.timers.states[t.state]}</span>;
}

const late = (t: Timer) => (overdue(t) > 0 ? <span class="bad">{seconds(overdue(t) / 1000)}</span> : t.late_ms !== undefined ? `${number(Math.round(t.late_ms))} ms` : '');

/** One is a timer with every transition of its life. */
function One({topic, group, id}: {topic: string; group: string; id: string}): JSX.Element {
  const of = `v1/timers/${encodeURIComponent(group)}/${encodeURIComponent(id)}`;
  const history = useLoad('', (signal) => get<Answered>(of + '/history', {topic}, signal));
  // The history has what a timer calls once that is stored, and the timer itself as long as it is held.
  const held = useLoad('', (signal) => get<Timer>(of, {topic}, signal).catch((e) => {
    if (e instanceof Refused && e.status === 404) return undefined;
    throw e;
  }));
  const all = history.value?.timers ?? [];
  const last = all.at(-1);
  const given = held.value ?? [...all].reverse().find((t) => t.callback_url !== undefined);
  return (
    <aside class="drawer broad" aria-label={texts.timers.one}>
      <header>
        <b><code><Text text={id} line /></code></b>
        {last && <State timer={last} />}
        <span class="row end"><button class="ghost" aria-label={texts.close} onClick={() => go({query: {timer: ''}})}>{'\u2715'}</button></span>
      </header>
      <div class="drawer-body">
        {history.error && !history.value ? <Problem error={history.error} again={history.again} /> : !last ? <p class="faint">{history.busy ? texts.loading : texts.timers.noneSo}</p> : (
          <>
            <dl class="figures small">
              {([[texts.timers.due, at(last.execute_at)], [texts.timers.created, at(all[0]!.created_at ?? all[0]!.updated_at)], [texts.timers.executed, at(last.executed_at)], [texts.timers.revision, number(last.revision)], [texts.timers.slot, number(last.slot)]] as [string, string][]).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
            </dl>
            {given?.callback_url && <p><span class="faint">{texts.timers.url}</span> <code><Text text={given.callback_url} line /></code></p>}
            {given?.payload !== undefined && <pre class="whole" aria-label={texts.timers.payload}><Text text={written(given.payload).join('\n')} /></pre>}
            <h3>{texts.timers.history}</h3>
            <div class="scrolled" tabIndex={0}>
              <table aria-label={texts.timers.history}>
                <thead><tr><th>{texts.timers.when}</th><th>{texts.timers.what}</th><th class="n">{texts.timers.attempt}</th><th class="wide-only">{texts.timers.due}</th><th class="n">{texts.timers.answer}</th><th class="n">{texts.timers.late}</th><th class="n">{texts.timers.took}</th></tr></thead>
                <tbody>
                  {all.map((t, i) => (
                    <tr key={i}>
                      <td class="nums">{at(t.updated_at)}</td>
                      <td class={t.last === 'failed' ? 'bad' : t.last === 'retry' ? 'warned' : t.last === 'done' ? 'good' : ''}>{t.last}{(t.error || t.detail) && <div class="bad small-text"><Text text={[t.error, t.detail].filter(Boolean).join(': ')} line /></div>}</td>
                      <td class="n">{number(t.attempt)}</td>
                      <td class="nums wide-only">{at(t.execute_at)}</td>
                      <td class="n">{t.status || ''}</td>
                      <td class="n">{t.late_ms ? `${t.late_ms.toFixed(1)} ms` : ''}</td>
                      <td class="n">{t.took_ms ? `${t.took_ms.toFixed(1)} ms` : ''}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </>
        )}
      </div>
    </aside>
  );
}
