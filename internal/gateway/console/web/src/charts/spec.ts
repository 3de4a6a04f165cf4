// What a chart shows, as it is in the address: up to twelve of them.
import {keep, kept} from '../storage';

export const maxCharts = 12;
const maxText = 4000; // characters of a statement or a filter

export const sources = ['search', 'metric', 'promql', 'sql'] as const;
export type Source = (typeof sources)[number];
export const shapes = ['bar', 'line', 'area'] as const;
export type Shape = (typeof shapes)[number];

/** A chart: what it asks, by its source, and how that is drawn. What is not told is empty. */
export type Chart = {source: Source; shape: Shape; title: string; topic: string; where: string; by: string; metric: string; align: string; reduce: string; text: string};

const empty: Chart = {source: 'search', shape: 'bar', title: '', topic: '', where: '', by: '', metric: '', align: '', reduce: '', text: ''};
const names = Object.keys(empty) as (keyof Chart)[];

export const chart = (of: Partial<Chart>): Chart => ({...empty, ...of});

/** written are charts as a text of the address. */
export function written(charts: Chart[]): string {
  return charts.length ? JSON.stringify(charts.map((c) => Object.fromEntries(names.filter((n) => c[n] !== '').map((n) => [n, c[n]])))) : 'none';
}

/** read are the charts of a text. What is not one is left out. */
export function read(text: string): Chart[] {
  let all: unknown;
  try {
    all = JSON.parse(text);
  } catch {
    return [];
  }
  if (!Array.isArray(all)) return [];
  return all.slice(0, maxCharts).flatMap((one: unknown) => {
    if (typeof one !== 'object' || !one) return [];
    const given = one as Record<string, unknown>;
    const c = {...empty};
    for (const name of names) {
      const value = Object.hasOwn(given, name) ? given[name] : undefined;
      if (typeof value === 'string') (c as Record<string, string>)[name] = value.slice(0, maxText);
    }
    return sources.includes(c.source) && shapes.includes(c.shape) ? [c] : [];
  });
}

/** topicsOf are the topics that charts read; none where one may read any of them. */
export const topicsOf = (charts: Chart[]) => (charts.every((c) => c.topic && c.source !== 'sql') ? [...new Set(charts.map((c) => c.topic))] : []);

const key = 'almanac-charts';

/** last are the charts that this tab showed last, so that a search is added to them. */
export const last = () => kept(key, 'sessionStorage');

/** lastRange is the range of time that they had. */
export const lastRange = () => ({from: kept(key + '-from', 'sessionStorage') || '-4h', to: kept(key + '-to', 'sessionStorage')});

export function keepCharts(text: string, from: string, to: string): void {
  keep(key, text, 'sessionStorage');
  keep(key + '-from', from, 'sessionStorage');
  keep(key + '-to', to, 'sessionStorage');
}

/** withSearch are the charts that were shown last, and the count over time of a search. */
export function withSearch(topic: string, where: string, by: string): string {
  return written([...read(last()).slice(0, maxCharts - 1), chart({topic, where, by})]);
}
