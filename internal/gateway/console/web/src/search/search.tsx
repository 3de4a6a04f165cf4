// Search: the events of a topic in a range that match a filter, newest first.
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import {go} from '../address';
import type {Facets, Histogram, Page, Shards, Topic} from '../api';
import {withSearch} from '../charts/spec';
import {get, Refused, topicPath} from '../client';
import {condition, joined, keyOf, type Row} from '../events';
import {useKeys} from '../keys';
import {useLoad} from '../load';
import {Empty, Problem} from '../notice';
import {texts} from '../texts';
import {instant, longTime} from '../time';
import {Drawer} from './drawer';
import {FacetList, facetFields} from './facets';
import {FilterBar} from './filterbar';
import {HistogramView} from './histogram';
import {EventList} from './list';
import {ListHead} from './listhead';
import {useNewer} from './newer';
import {RangePicker} from './range';
import {spanOf} from './span';
import {TopicPicker} from './topics';

const pageSize = 200;
const maxRows = 20000; // what the list holds: about 40 MB of events of 2 KB

type Props = {topics: Topic[]; topic: Topic; query: Record<string, string>};

export function Search({topics, topic, query}: Props): JSX.Element {
  const from = query['from'] ?? '-1h';
  const to = query['to'] ?? '';
  const where = query['where'] ?? '';
  const by = query['by'] ?? 'level';
  const [round, setRound] = useState(0);
  const search = [topic.name, from, to, where, round].join('\u0000');
  const now = useMemo(() => Date.now(), [search]);
  const asked = {from: from === 'all' ? undefined : from, to, where};

  const events = useLoad(search, (signal) => get<Page>(topicPath(topic.name, 'events'), {...asked, limit: pageSize}, signal));
  const newer = useNewer(topic.name, asked, events.value);
  // All time is as long as the topic's shards: a histogram needs an end.
  const span = useLoad(topic.name + round + '/' + newer.round, (signal) => get<Shards>('v1/shards', {topic: topic.name}, signal).then(spanOf));
  const filled = span.value && from === 'all' ? {from: new Date(span.value[0]).toISOString(), to: new Date(span.value[1] + 1).toISOString(), where} : asked;
  const ready = from !== 'all' || !!span.value;
  const bars = useLoad(search + by + ready + JSON.stringify(filled) + newer.round, ready ? (signal) => get<Histogram>(topicPath(topic.name, 'histogram'), {...filled, by, buckets: 90}, signal) : undefined);
  const fields = facetFields(topic, query['facets']);
  const facets = useLoad(search + fields.join() + newer.round, (signal) => get<Facets>(topicPath(topic.name, 'facets'), {...asked, fields: fields.join(','), n: 8}, signal));

  const older = useOlder(topic.name, asked, search, events.value);
  const rows = useMemo(() => [...newer.rows, ...older.rows], [newer.rows, older.rows]);
  const [chosen, choose] = useState<Row | undefined>();
  const [wrap, setWrap] = useState(query['wrap'] === '1');
  const columns = (query['cols'] ?? 'service').split(',').filter(Boolean);
  useChosen(topic.name, query['event'], rows, choose);

  const open = (e: Row | undefined) => {
    choose(e);
    go({query: {event: e ? keyOf(e) : ''}}, true);
  };
  const add = (field: string, value: string, not: boolean) => go({query: {where: joined(where, condition(topic, field, value, not)), event: query['event'] ?? ''}});
  const run = () => setRound((n) => n + 1);
  const bar = useRef<HTMLInputElement>(null);
  const at = chosen ? rows.findIndex((r) => keyOf(r) === keyOf(chosen)) : -1;
  const above = newer.rows.length;
  const [row, setRow] = useState(0); // the one that the keys are at, from the first of the first page: it stays it when others come above
  const near = row + above;
  useEffect(() => setRow(0), [search]);
  useKeys((key) => {
    const step = {j: 1, ArrowDown: 1, k: -1, ArrowUp: -1}[key];
    if (step && rows.length) {
      const next = Math.min(Math.max((at >= 0 ? at : near) + step, 0), rows.length - 1);
      setRow(next - above);
      if (chosen) open(rows[next]);
      return true;
    }
    if (key === 'Enter' && rows[near]) return open(rows[near]), true;
    if (key === 'Escape' && chosen) return open(undefined), true;
    if (key === '/') return bar.current?.focus(), true;
    if (key === 'r') return run(), true;
    if (key === 'w') return setWrap(!wrap), true;
    if (key === 'o') return older.load(), true;
    return false;
  });

  const start = from === 'all' ? span.value?.[0] : instant(from, now);
  const end = from === 'all' ? span.value?.[1] : instant(to, now);
  const wrong = [events, bars, facets].map((l) => l.error).find((e): e is Refused => e instanceof Refused && e.column > 0);
  const count = bars.value?.count;
  return (
    <div class={'search' + (chosen ? ' with-drawer' : '')}>
      <div class="controls">
        <TopicPicker topics={topics} topic={topic} />
        <FilterBar input={bar} topic={topic} where={where} range={asked} wrong={wrong} run={(text) => (text === where ? run() : go({query: {where: text, event: ''}}))} />
        <RangePicker from={from} to={to} />
        <button class="button primary" onClick={run} disabled={events.busy}>{texts.filter.run}</button>
      </div>
      <HistogramView data={bars.value} busy={bars.busy} by={by} topic={topic} start={start} end={end}
        brush={(a, b) => go({query: {from: new Date(a).toISOString(), to: new Date(b).toISOString(), event: ''}})}
        isolate={(value) => add(by, value, false)} toCharts={() => go({page: 'charts', query: {topic: topic.name, from, to, c: withSearch(topic.name, where, by)}})} />
      <div class="columns">
        <FacetList topic={topic} where={where} fields={fields} data={facets.value} busy={facets.busy} error={facets.error} range={asked} add={add} />
        <section class="results" aria-label={texts.list.name}>
          <ListHead topic={topic} asked={asked} shown={rows.length} count={count} busy={events.busy} columns={columns} wrap={wrap} setWrap={setWrap} newer={rows.length < maxRows ? newer : undefined} notes={[events.value?.notice, ...(events.value?.notes ?? [])]} />
          {events.error && wrong ? <Empty title={texts.filter.correct} hint={texts.filter.language} />
            : events.error ? <Problem error={events.error} again={run} />
            : !rows.length && !events.busy ? <Nothing topic={topic} span={span.value} where={where} from={from} />
            : <EventList rows={rows} columns={columns} wrap={wrap} stale={events.busy} above={above} chosen={at >= 0 ? at : near} open={open} near={older.load} foot={older.foot} reset={search} />}
        </section>
        {chosen && <Drawer key={keyOf(chosen)} topic={topic} event={chosen} columns={columns} add={add} close={() => open(undefined)} open={open} />}
      </div>
    </div>
  );
}

/** useOlder holds the rows of the first page and of those after it. */
function useOlder(topic: string, asked: Record<string, string | undefined>, search: string, first: Page | undefined) {
  const [more, set] = useState<{of?: Page; rows: Row[]; cursor?: string}>({rows: []});
  const [error, setError] = useState<Error>();
  const under = useRef<Page | undefined>(undefined);
  useEffect(() => {
    set({of: first, rows: [], cursor: first?.cursor});
    setError(undefined);
    under.current = undefined;
  }, [first, search]);
  const rows = useMemo(() => [...((first?.events ?? []) as Row[]), ...(more.of === first ? more.rows : [])], [first, more]);
  const full = rows.length >= maxRows;
  const cursor = more.of === first ? more.cursor : undefined;
  const load = async () => {
    if (!first || !cursor || under.current || full) return;
    under.current = first;
    setError(undefined);
    try {
      const page = await get<Page>(topicPath(topic, 'events'), {...asked, limit: pageSize * 2, cursor});
      if (under.current === first) set((was) => (was.of === first ? {of: first, rows: [...was.rows, ...(page.events as Row[])], cursor: page.cursor} : was));
    } catch (e) {
      setError(e as Error);
    } finally {
      if (under.current === first) under.current = undefined;
    }
  };
  const foot = !first ? null
    : error ? <button class="button small" onClick={load}>{error.message} {texts.retry}</button>
    : full ? <span>{texts.list.full}</span>
    : cursor ? <button class="button small" onClick={load}>{texts.list.older}</button>
    : <span>{texts.list.end}</span>;
  return {rows, load, foot};
}

/** useChosen opens the event that the address names. */
function useChosen(topic: string, key: string | undefined, rows: Row[], choose: (e: Row | undefined) => void): void {
  useEffect(() => {
    if (!key) return choose(undefined);
    const held = rows.find((r) => keyOf(r) === key);
    if (held) return choose(held);
    const [ts, id] = key.split('/');
    const stop = new AbortController();
    get<Row>(topicPath(topic, `events/${encodeURIComponent(ts ?? '')}/${encodeURIComponent(id ?? '')}`), {}, stop.signal).then(choose, () => undefined);
    return () => stop.abort();
  }, [topic, key, rows.length > 0]);
}

function Nothing({topic, span, where, from}: {topic: Topic; span: [number, number] | undefined; where: string; from: string}): JSX.Element {
  if (!span) {
    return <Empty title={texts.list.emptyTopic}><button class="button primary" onClick={() => go({page: 'send', query: {topic: topic.name}})}>{texts.list.howToSend}</button></Empty>;
  }
  return (
    <Empty title={texts.list.empty} hint={texts.list.emptyHint(longTime(span[0]), longTime(span[1]))}>
      <div class="row">
        {from !== 'all' && <button class="button primary" onClick={() => go({query: {from: 'all', to: ''}})}>{texts.list.widen}</button>}
        {where && <button class="button" onClick={() => go({query: {where: ''}})}>{texts.list.unfilter}</button>}
      </div>
    </Empty>
  );
}
