// The answers that charts are made of, each as columns over one axis.
import type {Aligned, Histogram} from '../api';
import {get, topicPath} from '../client';
import {textOf} from '../events';
import {histogram} from '../search/ask';
import {stepOf} from '../search/histogram';
import {type Answer, newID, run} from '../sql/statement';
import {texts} from '../texts';
import type {Chart} from './spec';

export type Axis = 'time' | 'number' | 'text';
export type Line = {name: string; values: (number | null)[]};
/** Data is what is drawn. x: seconds of time, numbers, or the places of labels. additive: parts of a whole, which may be stacked. */
export type Data = {axis: Axis; x: number[]; labels?: string[]; lines: Line[]; left: number; additive: boolean; note?: string; step: number};
export type Range = {start: number; end: number};

const maxLines = 16; // that are drawn
const maxSteps = 120;
const maxFilled = 2000; // steps that are filled with zeros

const rounds = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 2 * 86400, 7 * 86400];

/** roundStep is the shortest round number of seconds, a least one or more, by which a range has no more steps than are drawn. */
export function roundStep({start, end}: Range, least = 1): number {
  return rounds.find((r) => r >= least && (end - start) / 1000 / r <= maxSteps) ?? Math.ceil((end - start) / 86400e3 / maxSteps) * 86400;
}

export function ask(c: Chart, range: Range, signal: AbortSignal): Promise<Data> {
  const from = new Date(range.start).toISOString();
  const to = new Date(range.end).toISOString();
  switch (c.source) {
    case 'search':
      return histogram(c.topic, {from, to, where: c.where, by: c.by, buckets: maxSteps}, signal).then((h) => counted(h, c.by, range));
    case 'metric': {
      const step = roundStep(range, 60);
      return get<Aligned>(topicPath(c.topic, 'align'), {metric: c.metric, where: c.where, from, to, period: step + 's', align: c.align || 'mean', reduce: c.reduce || 'none', by: c.reduce && c.by}, signal).then((a) => aligned(a, step));
    }
    case 'promql': {
      const step = roundStep(range);
      return get<Matrix>((c.topic ? `t/${encodeURIComponent(c.topic)}/` : '') + 'api/v1/query_range', {query: c.text, start: range.start / 1000, end: range.end / 1000, step}, signal).then((m) => matrix(m, step));
    }
    case 'sql':
      return run(filled(c.text, range), newID(), signal).then(tabled);
  }
}

/** filled is a statement with the range of the page in place of {from}, {to} and {step}. */
export function filled(sql: string, range: Range): string {
  const time = (at: number) => `fromUnixTimestamp64Milli(${Math.floor(at)}, 'UTC')`;
  return sql.replaceAll('{from}', time(range.start)).replaceAll('{to}', time(range.end)).replaceAll('{step}', String(roundStep(range)));
}

function counted(h: Histogram, by: string, range: Range): Data {
  const at = new Map((h.buckets ?? []).map((b) => [Date.parse(b.ts), {count: b.count, by: b.by ?? {}}]));
  const first = at.keys().next().value;
  const step = stepOf(h.step, [...at.keys()]);
  // A step without events is a zero and no gap. Months are of many lengths, and days where clocks change, so they are as they came.
  if (first !== undefined && !/mo|d/.test(h.step)) {
    const none = {count: 0, by: {}};
    for (let t = first; t < range.end && at.size < maxFilled; t += step) if (!at.has(t)) at.set(t, none);
    for (let t = first - step; t + step > range.start && at.size < maxFilled; t -= step) at.set(t, none);
  }
  const all = [...at].sort(([a], [b]) => a - b);
  const of = (name: string) => all.map(([, b]) => (by ? ((b.by as Record<string, number>)[name] ?? 0) : b.count));
  const names = by ? [...new Set(all.flatMap(([, b]) => Object.keys(b.by)))] : [''];
  const lines = h.count ? names.map((name) => ({name: name || (by ? texts.facets.empty : texts.charts.events), values: of(name)})) : [];
  return {axis: 'time', x: all.map(([t]) => t / 1000), ...largest(lines), additive: true, note: [h.notice, ...(h.notes ?? [])].filter(Boolean).join(' '), step: step / 1000};
}

const aligned = (a: Aligned, step: number): Data => ({
  ...joined((a.groups ?? []).map((g) => ({name: nameOf(g.labels, g.metric ?? a.metric), points: g.points.map((p) => [Date.parse(p.time) / 1000, finite(p.value ?? p.summary?.mean)])}))),
  additive: false, step,
});

type Matrix = {data: {result: {metric: Record<string, string>; values: [number, string][]}[]}; warnings?: string[]; infos?: string[]};

const matrix = (m: Matrix, step: number): Data => ({
  ...joined(m.data.result.map(({metric: {__name__: metric, ...labels}, values}) => ({name: nameOf(labels, metric), points: values.map(([at, v]) => [at, finite(v)])}))),
  additive: false, step, note: [...(m.warnings ?? []), ...(m.infos ?? [])].join(' '),
});

/** nameOf tells a series by its labels, or by its metric where it has none. */
function nameOf(labels: Record<string, string>, metric: string | undefined): string {
  const all = Object.entries(labels).filter(([, v]) => v !== '').sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, v]) => `${k}=${v}`).join(' ');
  return all || metric || texts.charts.value;
}

function finite(value: unknown): number | null {
  const n = typeof value === 'number' ? value : typeof value === 'string' && value !== '' ? Number(value) : NaN;
  return Number.isFinite(n) ? n : null;
}

/** joined puts series that have times of their own over one axis. */
function joined(series: {name: string; points: [number, number | null][]}[]): Pick<Data, 'axis' | 'x' | 'lines' | 'left'> {
  const x = [...new Set(series.flatMap((s) => s.points.map(([at]) => at)))].sort((a, b) => a - b);
  const place = new Map(x.map((at, i) => [at, i]));
  return {axis: 'time', x, ...largest(series.map((s) => {
    const values: (number | null)[] = x.map(() => null);
    for (const [at, v] of s.points) values[place.get(at)!] = v;
    return {name: s.name, values};
  }))};
}

/** largest are the lines that are drawn, in the order of their names, and how many are left out. */
function largest(lines: Line[]): {lines: Line[]; left: number} {
  const size = (l: Line) => l.values.reduce<number>((sum, v) => sum + Math.abs(v ?? 0), 0);
  const drawn = lines.length > maxLines ? lines.map((l) => ({l, n: size(l)})).sort((a, b) => b.n - a.n).slice(0, maxLines).map(({l}) => l) : lines;
  return {lines: [...drawn].sort((a, b) => (a.name < b.name ? -1 : 1)), left: lines.length - drawn.length};
}

const isTime = (type: string) => /^(Nullable\(|LowCardinality\()*Date/.test(type);
const isNumber = (type: string) => /^(Nullable\(|LowCardinality\()*(U?Int|Float|Decimal|BFloat)/.test(type);

/** tabled is an answer of SQL over its first time, else its first text, else its first number. Another text tells series apart. */
export function tabled(a: Answer): Data {
  const find = (f: (type: string, i: number) => boolean) => a.types.findIndex(f);
  const isText = (type: string) => !isNumber(type) && !isTime(type);
  const time = find(isTime);
  const over = time >= 0 ? time : find(isText) >= 0 ? find(isText) : find(isNumber);
  const axis: Axis = time >= 0 ? 'time' : find(isText) >= 0 ? 'text' : 'number';
  const key = axis === 'number' ? -1 : find((t, i) => i !== over && isText(t));
  const columns = a.types.flatMap((t, i) => (isNumber(t) && i !== over ? [i] : []));
  if (!columns.length) throw new Error(texts.charts.noNumbers);
  const labels = axis === 'text' ? [...new Set(a.rows.map((r) => textOf(r[over])))] : undefined;
  const label = new Map(labels?.map((l, i) => [l, i]));
  const xOf = (r: unknown[]) => (labels ? label.get(textOf(r[over]))! : axis === 'time' ? timeOf(r[over]) : (finite(r[over]) ?? NaN));
  const x = [...new Set(a.rows.map(xOf).filter(Number.isFinite))].sort((p, q) => p - q);
  const place = new Map(x.map((n, i) => [n, i]));
  const lines = new Map<string, Line>();
  for (const r of a.rows) {
    const at = place.get(xOf(r));
    if (at === undefined) continue;
    for (const c of columns) {
      const name = [key >= 0 ? textOf(r[key]) || texts.facets.empty : '', columns.length > 1 || key < 0 ? a.names[c]! : ''].filter(Boolean).join(' ');
      const line = lines.get(name) ?? {name, values: x.map(() => null)};
      line.values[at] = finite(r[c]);
      lines.set(name, line);
    }
  }
  const near = x.slice(1).map((n, i) => n - x[i]!);
  return {axis, x, labels, ...largest([...lines.values()]), additive: key >= 0 && columns.length === 1, step: near.length ? Math.min(...near) : 1, note: a.cut ? texts.sql.cut : ''};
}

/** timeOf is a time of ClickHouse in seconds. One without a zone is in UTC, as the server is. */
function timeOf(value: unknown): number {
  const text = textOf(value).replace(' ', 'T');
  return Date.parse(text.includes('T') ? (/Z$|[+-]\d\d:?\d\d$/.test(text) ? text : text + 'Z') : text + 'T00:00:00Z') / 1000;
}
