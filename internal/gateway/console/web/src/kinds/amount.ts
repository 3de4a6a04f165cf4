// Amounts of meters: whole numbers of any size as text, and how they grew.

const names = ['', 'k', 'M', 'G', 'T', 'P', 'E', 'Z', 'Y'];

/** short is a number in four digits at most, with a decimal prefix. */
export function short(n: number): string {
  if (!Number.isFinite(n)) return '\u2013';
  let i = 0;
  let m = Math.abs(n);
  for (; m >= 999.5 && i < names.length - 1; i++) m /= 1000;
  const text = i === 0 && Number.isInteger(n) ? String(m) : m >= 99.95 ? m.toFixed(0) : m >= 9.995 ? m.toFixed(1) : m.toFixed(2);
  return (n < 0 ? '\u2212' : '') + text + (names[i] ? '\u2009' + names[i] : '');
}

export type Growth = {by: number; share?: number};

/** growth is from one amount to another. Its share is not known where there was nothing before. */
export function growth(before: number, now: number): Growth {
  return {by: now - before, share: before > 0 ? (now - before) / before : undefined};
}

/** percent is a share of what was before; one that is many times as much is said so. */
export function percent(share: number): string {
  if (share >= 9) return `\u00d7\u2009${short(share + 1)}`;
  const n = Math.abs(share) * 100;
  return `${share >= 0 ? '+' : '\u2212'}${n.toFixed(n < 10 ? 1 : 0)}\u2009%`;
}

/** monthRange is a month, or what of it has gone by, and as much of the month before. */
export function monthRange(month: string, now: number): {from: string; to: string; before: {from: string; to: string}; whole: boolean} {
  const [y, m] = month.split('-').map(Number) as [number, number];
  const begin = Date.UTC(y, m - 1);
  const end = Date.UTC(y, m);
  const before = Date.UTC(y, m - 2);
  const to = Math.min(end, Math.max(now, begin));
  const until = to === end ? begin : Math.min(begin, before + (to - begin));
  const text = (at: number) => new Date(at).toISOString();
  return {from: text(begin), to: text(to), before: {from: text(before), to: text(until)}, whole: to === end};
}

/** monthsUntil are the names of months, the present one first. */
export function monthsUntil(now: number, n: number): string[] {
  const d = new Date(now);
  return Array.from({length: n}, (_, i) => new Date(Date.UTC(d.getUTCFullYear(), d.getUTCMonth() - i)).toISOString().slice(0, 7));
}
