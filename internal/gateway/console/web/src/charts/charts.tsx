// Charts: up to twelve on a page that is an address, over one range of time.
import '../core';
import type {JSX} from 'preact';
import {useEffect, useMemo, useState} from 'preact/hooks';
import {go, read as address} from '../address';
import type {Shards, Topic} from '../api';
import {get} from '../client';
import {useKeys} from '../keys';
import {useLoad} from '../load';
import {Copy, Empty, Problem} from '../notice';
import {RangePicker} from '../search/range';
import {SavedMenu} from '../search/saved';
import {spanOf} from '../search/span';
import {texts} from '../texts';
import {instant} from '../time';
import {Card} from './card';
import type {Range} from './data';
import {type Chart, chart, keepCharts, last, lastRange, maxCharts, read, type Source, sources, topicsOf, written} from './spec';

export function Charts({topics, query}: {topics: Topic[]; query: Record<string, string>}): JSX.Element {
  const {from, to} = query['from'] ? {from: query['from'], to: query['to'] ?? ''} : lastRange();
  const text = query['c'] ?? '';
  const charts = useMemo(() => read(text), [text]);
  const [round, setRound] = useState(0);
  const [editing, setEditing] = useState<number>();
  // What the address lacks, charts or their range, is what this tab showed last. Then it is in the address.
  useEffect(() => {
    if (address().page !== 'charts') return;
    const c = text || last();
    if (c !== text || !query['from']) go({query: {c, from, to}}, true);
    else keepCharts(text, from, to);
  }, [text, from, to, !query['from']]);
  const of = topicsOf(charts);
  const only = of.length === 1 ? of[0] : undefined; // else the time of all topics
  const span = useLoad(from + round + only, from === 'all' ? (signal) => get<Shards>('v1/shards', {topic: only}, signal).then(spanOf) : undefined);
  const range = useMemo((): Range | undefined => {
    const now = Date.now();
    if (from === 'all') return span.value && {start: span.value[0], end: span.value[1] + 1};
    const start = instant(from, now);
    const end = instant(to, now);
    return start !== undefined && end !== undefined && start < end ? {start, end} : undefined;
  }, [from, to, round, span.value]);
  useKeys((key) => {
    if (key === 'r') return setRound(round + 1), true;
    if (key === 'Escape' && editing !== undefined) return setEditing(undefined), true;
    return false;
  });
  const set = (all: Chart[]) => go({query: {c: written(all)}});
  const brush = (r: Range) => go({query: {from: new Date(r.start).toISOString(), to: new Date(r.end).toISOString()}});
  const topic = topics.find((t) => t.name === query['topic']) ?? topics.find((t) => t.kind === 'log') ?? topics[0];
  const metrics = topics.find((t) => t.kind === 'metric');
  const add = (source: Source) => {
    const begun: Record<Source, Partial<Chart>> = {search: {topic: topic?.name ?? '', by: 'level'}, metric: {shape: 'line', topic: metrics?.name ?? ''}, promql: {shape: 'line', topic: metrics?.name ?? ''}, sql: {shape: 'line'}};
    set([...charts, chart({source, ...begun[source]})]);
    setEditing(charts.length);
  };
  const full = charts.length >= maxCharts;
  const height = charts.length === 1 ? 380 : 200;
  return (
    <div class="search">
      <div class="controls charts-controls">
        <div class="row">{sources.filter((s) => metrics || (s !== 'metric' && s !== 'promql')).map((s) => <button key={s} class="button" disabled={full} onClick={() => add(s)}>+ {texts.charts.sources[s]}</button>)}</div>
        {full && <span class="faint">{texts.charts.full(maxCharts)}</span>}
        <span class="row end">
          <Copy label={texts.event.link} text={() => location.href} />
          <button class="button" onClick={() => setRound(round + 1)}>{texts.charts.again}</button>
          <RangePicker from={from} to={to} />
          <SavedMenu kind="charts" now={{topics: topicsOf(charts), from, to, where: ''}} query={charts.length ? query : {}} />
        </span>
      </div>
      {!charts.length ? <Empty title={texts.charts.none} hint={texts.charts.noneHint} />
        : span.error ? <Problem error={span.error} again={span.again} />
        : !range ? (from === 'all' ? <Empty title={span.busy ? texts.loading : texts.charts.empty} /> : <Empty title={texts.charts.noRange} hint={texts.range.hint} />)
        : <div class={'charts' + (charts.length === 1 ? ' one' : '')}>{charts.map((c, i) => (
          <Card key={i} chart={c} range={range} round={round} topics={topics} editing={editing === i} edit={(on) => setEditing(on ? i : undefined)} height={height}
            set={(next) => set(charts.map((was, k) => (k === i ? next : was)))} remove={() => { setEditing(undefined); set(charts.filter((_, k) => k !== i)); }} brush={brush} widen={from === 'all' ? undefined : () => go({query: {from: 'all', to: ''}})} />
        ))}</div>}
    </div>
  );
}
