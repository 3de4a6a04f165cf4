// An event as the page shows it: names and texts, in the order in which they are read.
import type {Topic} from './api';

export type Row = {ts: string; id: string; [name: string]: unknown};

const first = ['ts', 'level', 'service', 'type', 'user_id', 'trace_id', 'span_id', 'message'];
const place = ['id', 'month', 'shard', 'pos', '_pos', '_topic'];

export const keyOf = (e: Row) => e.ts + '/' + e.id;

/** topicOf is the topic of an event of a search over several. */
export const topicOf = (e: Row | undefined, topics: Topic[]) => topics.find((t) => t.name === e?.['_topic']) ?? topics[0]!;

export function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

export function attributesOf(e: Row): [string, string][] {
  const all = e['attributes'];
  return typeof all === 'object' && all ? Object.entries(all).map(([name, value]) => [name, textOf(value)]) : [];
}

/** fieldsOf are the fields of an event that are not empty: columns, promoted ones, attributes. */
export function fieldsOf(e: Row): [string, string][] {
  const promoted = Object.keys(e).filter((name) => !first.includes(name) && !place.includes(name) && name !== 'attributes');
  const columns = [...first, ...promoted].map((name): [string, string] => [name, textOf(e[name])]);
  return [...columns, ...attributesOf(e).map(([name, value]): [string, string] => [attributeName(name), value])].filter(([, value]) => value !== '');
}

export function valueOf(e: Row, field: string): string {
  if (!field.startsWith('attributes')) return textOf(e[field]);
  return attributesOf(e).find(([name]) => attributeName(name) === field)?.[1] ?? '';
}

/** attributeName is an attribute as a filter names it. */
export function attributeName(name: string): string {
  return /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/.test(name) ? 'attributes.' + name : `attributes['${escaped(name)}']`;
}

function escaped(text: string): string {
  const named: Record<string, string> = {'\\': '\\\\', "'": "\\'", '\n': '\\n', '\t': '\\t', '\r': '\\r', '\0': '\\0'};
  return text.replace(/[\\'\n\t\r\0]/g, (c) => named[c]!);
}

const plain = /^(u?int|float|number|decimal|bool)/i;

/** condition is a comparison of a field with a value, in the language of filters. */
export function condition(topic: Topic | undefined, field: string, value: string, not = false): string {
  const type = topic?.fields?.find((f) => f.name === field)?.type ?? '';
  const bare = field === 'pos' || (plain.test(type) && /^(-?\d+(\.\d+)?|true|false)$/.test(value));
  return `${field} ${not ? '!=' : '='} ${bare ? value : `'${escaped(value)}'`}`;
}

/** parts are the conditions that AND joins, by the tokens of the language of filters, apart from what brackets hold; undefined where OR joins some. */
function parts(where: string): string[] | undefined {
  const all = [''];
  let depth = 0;
  for (const [word] of where.matchAll(/'(?:\\[^]|[^'\\])*'|"(?:\\[^]|[^"\\])*"|`[^`]*`|[a-z_@][\w@]*(?:\.[\w@$:/#-]+)*|[^]/gi)) {
    if (word === '(' || word === '[') depth++;
    if (word === ')' || word === ']') depth--;
    const link = depth ? '' : word.toUpperCase();
    if (link === 'OR') return undefined;
    if (link === 'AND') all.push('');
    else all[all.length - 1] += word;
  }
  return all.map((part) => part.trim()).filter(Boolean);
}

/** toggled adds to a filter that a field has a value, or has it not. What is there goes, and so does the opposite. */
export function toggled(where: string, topic: Topic | undefined, field: string, value: string, not: boolean): string {
  const add = condition(topic, field, value, not);
  const all = parts(where);
  if (!all) return `(${where.trim()}) AND ${add}`;
  if (all.includes(add)) return all.filter((part) => part !== add).join(' AND ');
  return [...all.filter((part) => part !== condition(topic, field, value, !not)), add].join(' AND ');
}

export const holds = (where: string, part: string) => parts(where)?.includes(part) ?? false;
