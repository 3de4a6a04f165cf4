// Recent searches, which are in this browser alone.
import {keep, kept} from '../storage';

export type Kept = {topics: string[]; from: string; to: string; where: string};

const key = 'almanac-recent';
const most = 20;
const maxWhere = 4096; // characters of a filter that is kept

export function recent(): Kept[] {
  try {
    const all: unknown = JSON.parse(kept(key) || '[]');
    return Array.isArray(all) ? all.filter(isKept).slice(0, most) : [];
  } catch {
    return []; // another program wrote it
  }
}

const isKept = (one: Partial<Kept> | null): one is Kept =>
  !!one && Array.isArray(one.topics) && one.topics.every((t) => typeof t === 'string') && [one.from, one.to, one.where].every((text) => typeof text === 'string');

/** remember puts a search first. One without a filter is not worth it. */
export function remember(one: Kept): void {
  if (!one.where || one.where.length > maxWhere) return;
  const same = (other: Kept) => other.where === one.where && other.topics.join() === one.topics.join();
  keep(key, JSON.stringify([one, ...recent().filter((other) => !same(other))].slice(0, most)));
}

export const forgetRecent = () => keep(key, '');
