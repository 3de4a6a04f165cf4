// Search: the events of topics in a range that match a filter, newest first.
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import {go} from '../address';
import type {Topic} from '../api';
import {withSearch} from '../charts/spec';
import {eventPath, get, Refused} from '../client';
import {keyOf, type Row, toggled, topicOf} from '../events';
import {useKeys} from '../keys';
import {useLoad} from '../load';
import {Empty, Problem} from '../notice';
import {texts} from '../texts';
import {instant, longTime, shortTime, zone} from '../time';
import * as ask from './ask';
import {type Column, ColumnHeads, columnsOf} from './columns';
import {Drawer} from './drawer';
import {FacetList, facetFields} from './facets';
import {FilterBar} from './filterbar';
import {HistogramView, stepsOf} from './histogram';
import {EventList} from './list';
import {ListHead} from './listhead';
import {useNewer} from './newer';
import {maxRows, useOlder} from './older';
import {RangePicker} from './range';
import {remember} from './recent';
import {SavedMenu} from './saved';
import {TopicsPicker} from './topicspicker';

const pageSize = 200;

type Props = {all: Topic[]; topics: Topic[]; query: Record<string, string>};

/** Search shows events of topics; all are those that may be chosen. */
export function Search({all, topics, query}: Props): JSX.Element {
  const names = topics.map((t) => t.name);
  const several = topics.length > 1;
  const topic = topics[0]!;
  const from = query['from'] ?? '-1h';
  const to = query['to'] ?? '';
  const where = query['where'] ?? '';
  const by = query['by'] ?? (several ? ask.byTopic : 'level');
  const [round, setRound] = useState(0);
  const search = [names.join(), from, to, where, round].join('\u0000');
  const now = useMemo(() => Date.now(), [search]);
  const asked = {from: from === 'all' ? undefined : from, to, where};

  const first = useRef<Promise<unknown>>(undefined);
  const events = useLoad(search, (signal) => (first.current = ask.page(names, {...asked, limit: pageSize}, signal)));
  const newer = useNewer(names, asked, events.value);
  // All time is as long as the topics' shards: a histogram needs an end. That of several topics needs the same ends for all.
  const span = useLoad(names.join() + round + '/' + newer.round, (signal) => ask.span(names, signal));
  const later = useMemo(() => Date.now(), [search, newer.round]);
  const ends = from === 'all' ? span.value && [span.value[0], span.value[1] + 1] : several ? [instant(from, now) ?? now, instant(to, later) ?? later] : undefined;
  const start = from === 'all' ? span.value?.[0] : instant(from, now);
  const end = from === 'all' ? span.value?.[1] : instant(to, now);
  const step = stepsOf(start, end).find((s) => s === query['step']) ?? ''; // one that does not fit the range is not used
  const filled = ends ? {from: new Date(ends[0]!).toISOString(), to: new Date(ends[1]!).toISOString(), where} : asked;
  const ready = from !== 'all' || !!span.value;
  const bars = useLoad(search + by + step + zone() + ready + JSON.stringify(filled) + newer.round, ready ? (signal) => ask.after(first.current).then(() => ask.bars(names, {...filled, ...(step ? {step} : {buckets: 90})}, by, signal)) : undefined);
  const fields = facetFields(topics, query['facets']);
  const facets = useLoad(search + fields.join() + newer.round, (signal) => ask.after(first.current).then(() => ask.facets(names, {...asked, fields: fields.join(',')}, signal)));

  const older = useOlder(names, asked, search, events.value);
  const rows = useMemo(() => [...newer.rows, ...older.rows], [newer.rows, older.rows]);
  const [chosen, choose] = useState<Row | undefined>();
  const wrap = query['wrap'] === '1';
  const setWrap = (on: boolean) => go({query: {wrap: on ? '1' : ''}}, true);
  const [dragged, drag] = useState<Column[]>();
  const columns = dragged ?? columnsOf(query);
  useEffect(() => {
    if (events.value) remember({topics: names, from, to, where});
  }, [events.value]);
  const gone = useChosen(names, query['event'], rows, choose);

  const open = (e: Row | undefined) => {
    choose(e);
    go({query: {event: e ? keyOf(e) + (several ? '/' + topicOf(e, topics).name : '') : ''}}, true);
  };
  const add = (field: string, value: string, not: boolean) => go({query: {where: toggled(where, topicOf(chosen, topics), field, value, not), event: query['event'] ?? ''}});
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

  const wrong = [events, bars, facets].map((l) => l.error).find((e): e is Refused => e instanceof Refused && e.column > 0);
  const count = bars.value?.count;
  return (
    <div class={'search' + (chosen || gone ? ' with-drawer' : '')}>
      <div class="controls">
        <TopicsPicker topics={all} chosen={topics} />
        <FilterBar input={bar} topic={topic} where={where} range={asked} wrong={wrong} run={(text) => (text === where ? run() : go({query: {where: text, event: ''}}))} />
        <RangePicker from={from} to={to} />
        <SavedMenu kind="" now={{topics: names, from, to, where}} query={query} />
        <button class="button primary" onClick={run} disabled={events.busy}>{texts.filter.run}</button>
      </div>
      <HistogramView data={bars.value} busy={bars.busy} error={wrong || events.error ? undefined : bars.error} again={bars.again} by={by} step={step} topics={topics} start={start} end={end}
        brush={(a, b) => go({query: {from: new Date(a).toISOString(), to: new Date(b).toISOString(), event: ''}})}
        isolate={(value) => (by === ask.byTopic ? go({query: {topic: value, by: '', event: ''}}) : add(by, value, false))}
        toCharts={() => go({page: 'charts', query: {topic: topic.name, from, to, c: withSearch(topic.name, where, by === ask.byTopic ? 'level' : by)}})} />
      <div class="columns">
        <FacetList topic={topic} where={where} fields={fields} named={!!query['facets']} data={facets.value} busy={facets.busy} error={wrong || events.error ? undefined : facets.error} again={facets.again} range={asked} add={add} />
        <section class="results" aria-label={texts.list.name} style={{'--time': shortTime(rows.at(-1)?.ts ?? '').length > 19 ? '24ch' : ''}}>
          <ListHead topics={topics} asked={asked} shown={rows.length} count={count} busy={events.busy} columns={columns} wrap={wrap} setWrap={setWrap} newer={rows.length < maxRows ? newer : undefined} notes={events.value?.notes ?? []} />
          {events.error && wrong ? <Empty title={texts.filter.correct} hint={texts.filter.language} />
            : events.error ? <Problem error={events.error} again={run} />
            : !rows.length && !events.busy ? <Nothing topic={topic} span={span.value} where={where} from={from} />
            : <>
              <ColumnHeads columns={columns} several={several} drag={drag} />
              <EventList rows={rows} columns={columns} several={several} wrap={wrap} stale={events.busy} above={above} chosen={at >= 0 ? at : near} open={open} near={older.load} foot={older.foot} reset={search} />
            </>}
        </section>
        {gone && !chosen && <aside class="drawer" aria-label={texts.event.name}><Problem error={gone} /><p class="row"><button class="button" onClick={() => open(undefined)}>{texts.close}</button></p></aside>}
        {chosen && <Drawer key={keyOf(chosen)} topic={topicOf(chosen, topics)} event={chosen} columns={columns} add={add} close={() => open(undefined)} open={open} />}
      </div>
    </div>
  );
}

/** useChosen opens the event that the address names, and returns why it cannot, such as that it was erased. */
function useChosen(topics: string[], key: string | undefined, rows: Row[], choose: (e: Row | undefined) => void): Error | undefined {
  const [gone, setGone] = useState<Error>();
  useEffect(() => {
    setGone(undefined);
    if (!key) return choose(undefined);
    const [ts, id, topic = topics[0]!] = key.split('/');
    const held = rows.find((r) => keyOf(r) === ts + '/' + id);
    if (held) return choose(held);
    const stop = new AbortController();
    get<Row>(eventPath(topic, ts ?? '', id ?? ''), {}, stop.signal).then((e) => choose(topics.length > 1 ? {...e, _topic: topic} : e), (error: Error) => { if (!stop.signal.aborted) choose(undefined), setGone(error); });
    return () => stop.abort();
  }, [topics.join(), key, rows.length > 0]);
  return gone;
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
