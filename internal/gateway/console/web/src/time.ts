// Times and ranges. A range is two texts as the API takes them: a distance back such as -15m, a time, or nothing.
import {keep, kept} from './storage';
import {texts} from './texts';

const units: Record<string, number> = {s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 7 * 86400e3};

/** instant is the time that a text of a range means; undefined where it does not mean one. */
export function instant(text: string, now: number): number | undefined {
  if (text === '' || text === 'now') return now;
  const back = /^-(\d+)([smhdw])$/.exec(text);
  if (back) return now - Number(back[1]) * units[back[2]!]!;
  const at = Date.parse(/^\d{4}-\d\d-\d\d$/.test(text) ? text + 'T00:00:00Z' : text);
  return Number.isNaN(at) ? undefined : at;
}

const two = (n: number, width = 2) => String(n).padStart(width, '0');

let utc = kept('almanac-zone') === 'utc';
export const inUTC = () => utc;
export function setUTC(on: boolean): void {
  utc = on;
  keep('almanac-zone', on ? 'utc' : 'local');
}

/** zone is where the days of the page begin, as the API names it; empty: UTC. */
export const zone = () => (utc ? '' : Intl.DateTimeFormat().resolvedOptions().timeZone);

/** behind is how long after midnight of UTC that of the page is. */
export const behind = (at: number) => (utc ? 0 : new Date(at).getTimezoneOffset() * 60e3);

function parts(at: number) {
  const d = new Date(at);
  return utc
    ? {y: d.getUTCFullYear(), mo: d.getUTCMonth(), d: d.getUTCDate(), h: d.getUTCHours(), mi: d.getUTCMinutes(), s: d.getUTCSeconds(), ms: d.getUTCMilliseconds()}
    : {y: d.getFullYear(), mo: d.getMonth(), d: d.getDate(), h: d.getHours(), mi: d.getMinutes(), s: d.getSeconds(), ms: d.getMilliseconds()};
}

/** shortTime is a time in a list: the year only where it is not this one. */
export function shortTime(ts: string): string {
  const at = Date.parse(ts);
  if (Number.isNaN(at)) return ts;
  const p = parts(at);
  const year = p.y === parts(Date.now()).y ? '' : p.y + ' ';
  return `${year}${texts.time.months[p.mo]} ${two(p.d)} ${two(p.h)}:${two(p.mi)}:${two(p.s)}.${two(p.ms, 3)}`;
}

/** axisTime is a time below a chart whose range is so long. */
export function axisTime(at: number, span: number): string {
  const p = parts(at);
  if (span > 300 * 86400e3) return `${texts.time.months[p.mo]} ${p.y}`;
  if (span > 3 * 86400e3) return `${texts.time.months[p.mo]} ${two(p.d)}`;
  if (span > 86400e3) return `${texts.time.months[p.mo]} ${two(p.d)} ${two(p.h)}:${two(p.mi)}`;
  return span < 300e3 ? `${two(p.h)}:${two(p.mi)}:${two(p.s)}` : `${two(p.h)}:${two(p.mi)}`;
}

export function longTime(at: number): string {
  const p = parts(at);
  return `${p.y}-${two(p.mo + 1)}-${two(p.d)} ${two(p.h)}:${two(p.mi)}:${two(p.s)}`;
}

/** ago is a distance from now in words. */
export function ago(ts: string, now = Date.now()): string {
  return seconds((now - Date.parse(ts)) / 1000);
}

export function seconds(s: number): string {
  const w = texts.time;
  if (s < 10) return w.seconds(s.toFixed(1));
  if (s < 120) return w.seconds(String(Math.round(s)));
  if (s < 7200) return w.minutes(Math.round(s / 60));
  if (s < 172800) return w.hours(Math.round(s / 3600));
  return w.days(Math.round(s / 86400));
}

const grouped = new Intl.NumberFormat('en');
export const number = (n: number) => grouped.format(n);

export function bytes(n: number): string {
  const names = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
  let i = 0;
  for (; n >= 1000 && i < names.length - 1; i++) n /= 1000;
  return (i === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)) + ' ' + names[i];
}
