import type {Shards} from '../api';

/** spanOf is from the first event of shards to their last. */
export function spanOf(s: Shards): [number, number] | undefined {
  const held = s.shards.filter((one) => one.rows > 0 && one.status !== 'dropped');
  if (!held.length) return undefined;
  return [Math.min(...held.map((one) => Date.parse(one.min_ts))), Math.max(...held.map((one) => Date.parse(one.max_ts)))];
}
