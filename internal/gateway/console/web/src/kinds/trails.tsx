// Trails: who changed what, with the resource before and after beside each other.
import type {JSX} from 'preact';
import {go} from '../address';
import type {Facets, Topic, Trail} from '../api';
import {get, topicPath} from '../client';
import {textOf} from '../events';
import {useLoad} from '../load';
import {Empty, Problem} from '../notice';
import {usePaged} from '../paged';
import {RangePicker} from '../search/range';
import {Text} from '../shown';
import {texts} from '../texts';
import {longTime, number, shortTime} from '../time';
import {Beside} from './beside';
import {Choice, Field, More, OfKind} from './controls';
import {Table} from './list';

type Entry = Trail['entries'][number];
const pageSize = 100;
const maxRows = 5000; // that the list holds
const selections = ['resource', 'actor', 'request', 'open'] as const;
type Selection = (typeof selections)[number];
/** What a selection is among the fields of an event. */
const fieldOf: Record<Selection, string> = {resource: 'resource', actor: 'user_id', request: 'request_id', open: ''};

export function Trails({topics, query}: {topics: Topic[]; query: Record<string, string>}): JSX.Element {
  const scope = query['scope'] ?? '';
  const by: Selection = selections.find((s) => s === query['by']) ?? 'resource';
  const of = query['of'] ?? '';
  const from = query['from'] ?? '-30d';
  const to = query['to'] ?? '';
  const range = {from: from === 'all' ? undefined : from, to};
  const own = topics.filter((t) => t.kind === 'audit');
  const topic = own.find((t) => t.name === query['topic']) ?? own[0];
  // What may be chosen: the frequent scopes, and of the one that is chosen the frequent resources, actors or requests.
  const frequent = useLoad([topic?.name, scope, by, from, to].join('\0'), topic && ((signal) => get<Facets>(topicPath(topic.name, 'facets'), {...range, fields: ['scope', fieldOf[by]].filter(Boolean).join(','), where: scope && `scope = ${quoted(scope)}`, n: 30}, signal)));
  const valuesOf = (field: string) => (frequent.value?.facets ?? []).find((f) => f.field === field)?.values ?? [];
  const controls = (
    <>
      <Field label={texts.trails.scope} value={scope} list={valuesOf('scope').map((v) => v.value)} set={(text) => go({query: {scope: text, entry: ''}})} />
      <Choice label={texts.trails.by} value={by} of={selections.map((s) => [s, texts.trails.selections[s]!] as const)} set={(s) => go({query: {by: s, of: '', entry: ''}})} />
      {by !== 'open' && <Field label={texts.trails.selections[by]!} wide value={of} list={valuesOf(fieldOf[by]).map((v) => v.value)} set={(text) => go({query: {of: text, entry: ''}})} />}
      <RangePicker from={from} to={to} />
    </>
  );
  const complete = scope && (by === 'open' || of);
  const next = scope ? fieldOf[by] : 'scope';
  return (
    <OfKind topics={topics} kind="audit" asked={query['topic']} controls={controls}>
      {(t) => (complete
        ? <Entries key={[t.name, scope, by, of, from, to].join('\0')} topic={t.name} asked={{...range, scope, [by]: by === 'open' ? 'true' : of, history: 'true'}} entry={query['entry'] ?? ''} />
        : (
          <section class="results" aria-label={texts.trails.choose(next)}>
            {frequent.error ? <Problem error={frequent.error} again={frequent.again} />
              : frequent.value && !valuesOf(next).length ? <Empty title={texts.trails.empty} hint={texts.trails.emptyHint} />
              : <Table label={texts.trails.choose(next)} rows={valuesOf(next).filter((v) => v.value)} keyOf={(v) => v.value} choose={(v) => v && go({query: scope ? {of: v.value} : {scope: v.value}})}
                columns={[{name: texts.trails.choose(next), grow: true, cell: (v) => <Text text={v.value} line />}, {name: texts.trails.events, right: true, cell: (v) => number(v.count)}]} />}
          </section>
        ))}
    </OfKind>
  );
}

const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;

function Entries({topic, asked, entry}: {topic: string; asked: Record<string, string | undefined>; entry: string}): JSX.Element {
  const list = usePaged<Entry>('', maxRows, (cursor, signal) => get<Trail>(topicPath(topic, 'trail'), {...asked, limit: pageSize, cursor}, signal).then((t) => ({rows: t.entries, cursor: t.cursor})));
  const open = list.rows.find((e) => keyOf(e) === entry);
  return (
    <>
      <section class="results" aria-label={texts.trails.name}>
        {list.error && !list.rows.length ? <Problem error={list.error} again={list.again} />
          : list.loaded && !list.rows.length ? <Empty title={texts.trails.none} hint={texts.trails.noneHint} />
          : <Table<Entry> label={texts.trails.name} rows={list.rows} keyOf={keyOf} open={entry} choose={(e) => go({query: {entry: e ? keyOf(e) : ''}}, true)}
            columns={[
              {name: texts.trails.began, cell: (e) => <span class="nums faint">{shortTime(e.began)}</span>},
              {name: texts.trails.what, cell: (e) => <Text text={e.method || e.type} line />},
              {name: texts.trails.resource, grow: true, cell: (e) => <Text text={e.resource || e.message || e.request_id} line />},
              {name: texts.trails.actor, cell: (e) => <Text text={e.user_id ?? ''} line />},
              {name: texts.trails.state, cell: (e) => <State entry={e} />},
            ]}
            foot={list.error ? <Problem error={list.error} again={list.more} /> : <More more={list.more} busy={list.busy} end={texts.trails.all(number(list.rows.length))} />} />}
      </section>
      {open && <One key={entry} entry={open} />}
    </>
  );
}

const keyOf = (e: Entry) => [e.began, e.request_id, e.type, e.resource ?? ''].join('/');

const State = ({entry: e}: {entry: Entry}) => (
  <span class={e.disputed || e.state === 'rolled_back' ? 'bad' : e.state === 'pre_committed' ? 'warned' : e.state ? 'good' : 'faint'}>{e.disputed ? texts.trails.disputed : e.state ? texts.trails.states[e.state] : '\u2013'}</span>
);

/** One is a change: how it ended, what it changed, and every event of it. */
function One({entry: e}: {entry: Entry}): JSX.Element {
  const rows: [string, string | undefined][] = [
    [texts.trails.actor, e.user_id], [texts.trails.method, [e.service, e.method].filter(Boolean).join(' ')], [texts.trails.resource, [e.resource_type, e.resource].filter(Boolean).join(' ')], [texts.trails.category, e.category],
    [texts.trails.scope, e.scope], [texts.trails.request, e.request_id], [texts.trails.began, longTime(Date.parse(e.began))], [texts.trails.ended, e.ended && longTime(Date.parse(e.ended))], [texts.trails.message, e.message],
    ...Object.entries(e.attributes ?? {}),
  ];
  const whole = (has: unknown, size: number | undefined) => (has === undefined && size ? texts.trails.omitted(number(size)) : texts.trails.noBody);
  return (
    <aside class="drawer broad" aria-label={texts.trails.one}>
      <header>
        <b><Text text={e.method || e.type} line /></b> <State entry={e} />
        <span class="row end"><button class="ghost" aria-label={texts.close} onClick={() => go({query: {entry: ''}}, true)}>{'\u2715'}</button></span>
      </header>
      <div class="drawer-body">
        {(e.before !== undefined || e.after !== undefined) && (
          <Beside label={texts.trails.change} left={{name: texts.trails.before, value: e.before, none: whole(e.before, e.before_bytes)}} right={{name: texts.trails.after, value: e.after, none: whole(e.after, e.after_bytes)}} />
        )}
        <dl class="fields">{rows.map(([name, value]) => value && <div key={name}><dt><Text text={name} line /></dt><dd><Text text={textOf(value)} /></dd></div>)}</dl>
        <h3>{texts.trails.history(number(e.events))}</h3>
        <div class="scrolled" tabIndex={0}>
          <table aria-label={texts.trails.history(number(e.events))}>
            <tbody>{(e.history ?? []).map((h) => <tr key={h.id}><td class="nums">{shortTime(h.ts)}</td><td><Text text={h.type} line /></td><td>{h.state ? texts.trails.states[h.state] : ''}</td><td><Text text={h.message ?? ''} line /></td></tr>)}</tbody>
          </table>
        </div>
      </div>
    </aside>
  );
}
