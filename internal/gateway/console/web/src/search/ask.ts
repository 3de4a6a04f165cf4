// What a search asks of one topic or of several. Pages and counts of several are merged by the server; bars and facets here.
import type {Count, Facets, Histogram, Page, SearchCount, SearchPage, Shards} from '../api';
import {get, type Query, Refused, topicPath} from '../client';
import type {Row} from '../events';
import {zone} from '../time';
import {spanOf} from './span';

export type Asked = {from?: string; to?: string; where?: string};
export type Found = {events: Row[]; cursor?: string; back?: string; notes: string[]};

export const maxTopics = 8; // of one search

export async function page(topics: string[], query: Query, signal?: AbortSignal): Promise<Found> {
  if (topics.length === 1) {
    const p = await get<Page>(topicPath(topics[0]!, 'events'), query, signal);
    return {events: p.events as Row[], cursor: p.cursor, back: p.back, notes: said([p])};
  }
  const p = await get<SearchPage>('v1/events', {...query, topic: topics}, signal);
  return {events: p.events.map((e) => ({...e.event, _topic: e.topic}) as Row), cursor: p.cursor, back: p.back, notes: said(p.topics)};
}

const said = (of: {notice?: string; notes?: string[]}[]) => [...new Set(of.flatMap((p) => [p.notice ?? '', ...(p.notes ?? [])]).filter(Boolean))];

export async function count(topics: string[], query: Query, signal?: AbortSignal): Promise<number> {
  const asked = topics.length === 1 ? get<Count>(topicPath(topics[0]!, 'count'), query, signal) : get<SearchCount>('v1/events/count', {...query, topic: topics}, signal);
  return (await asked).count;
}

/** histogram has the days of the page. A server without data of this browser's zone has those of UTC. */
export const histogram = (topic: string, query: Query, signal?: AbortSignal) => {
  const asked = (more: Query) => get<Histogram>(topicPath(topic, 'histogram'), {...query, ...more}, signal);
  return asked({zone: zone()}).catch((e) => {
    if (e instanceof Refused && / time zone /.test(e.message)) return asked({});
    throw e;
  });
};

/** byTopic splits bars by the topics of a search. */
export const byTopic = 'topic';

type Bucket = NonNullable<Histogram['buckets']>[number];

/** bars are those of a range whose ends are the same for all topics, so that their steps are. */
export async function bars(topics: string[], query: Query, by: string, signal?: AbortSignal): Promise<Histogram> {
  const all = await Promise.all(topics.map((t) => histogram(t, {...query, by: by === byTopic ? undefined : by}, signal)));
  if (topics.length === 1 && by !== byTopic) return all[0]!;
  const buckets = new Map<string, Bucket>();
  all.forEach((one, i) => {
    for (const b of one.buckets ?? []) {
      const into = buckets.get(b.ts) ?? {ts: b.ts, count: 0, by: Object.create(null) as Record<string, number>}; // a key may be __proto__
      buckets.set(b.ts, into);
      into.count += b.count;
      for (const [key, n] of by === byTopic ? [[topics[i]!, b.count] as const] : Object.entries(b.by ?? {})) into.by![key] = (into.by![key] ?? 0) + n;
    }
  });
  return {...all[0]!, count: all.reduce((sum, one) => sum + one.count, 0), buckets: [...buckets.values()].sort((a, b) => (a.ts < b.ts ? -1 : 1))};
}

const shown = 8; // values of a field

/** facets of several topics are sums of the most frequent values of each. */
export async function facets(topics: string[], query: Query, signal?: AbortSignal): Promise<Facets> {
  const all = await Promise.all(topics.map((t) => get<Facets>(topicPath(t, 'facets'), {...query, n: topics.length === 1 ? shown : 4 * shown}, signal)));
  if (topics.length === 1) return all[0]!;
  const merged = all[0]!.facets.map((first, i) => {
    const of = all.map((one) => one.facets[i]).filter((f) => f?.field === first.field).map((f) => f!);
    const sums = new Map<string, number>();
    for (const v of of.flatMap((f) => f.values)) sums.set(v.value, (sums.get(v.value) ?? 0) + v.count);
    const values = [...sums].map(([value, n]) => ({value, count: n})).sort((a, b) => b.count - a.count);
    const rest = values.splice(shown).reduce((sum, v) => sum + v.count, 0);
    return {...first, values, other: rest + of.reduce((sum, f) => sum + f.other, 0), empty: of.reduce((sum, f) => sum + f.empty, 0)};
  });
  return {...all[0]!, count: all.reduce((sum, one) => sum + one.count, 0), facets: merged};
}

/** span is from the first to the last event of topics, by their shards; undefined where they have none. */
export async function span(topics: string[], signal?: AbortSignal): Promise<[number, number] | undefined> {
  const {shards} = await get<Shards>('v1/shards', topics.length === 1 ? {topic: topics[0]} : {}, signal);
  return spanOf({shards: shards.filter((one) => topics.includes(one.topic))});
}

const patience = 1500; // milliseconds

/** after waits for what is seen first: the events, before counts of many more take the server's time. It waits no longer than its patience. */
export const after = (first: Promise<unknown> | undefined): Promise<unknown> => Promise.race([first?.catch(() => 0), new Promise((done) => setTimeout(done, patience))]);
