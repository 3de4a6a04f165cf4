// What may stand at the end of an unfinished filter.
import type {Fields, Topic, Values} from '../api';
import {get, topicPath} from '../client';
import {condition} from '../events';
import {texts} from '../texts';

/** A suggestion replaces so many characters before the caret. */
export type Suggestion = {text: string; note: string; replaces: number};

const links = ['AND', 'OR'];
const operators = Object.entries(texts.filter.means).filter(([text]) => !links.includes(text));
const linked = Object.entries(texts.filter.means).filter(([text]) => links.includes(text));

export type Want = {kind: 'field' | 'operator' | 'value' | 'link' | 'none'; field: string; part: string};

const token = /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*$|"(?:\\.|[^"\\])*$|[A-Za-z_`][\w.`#]*(?:\['(?:\\.|[^'\\])*'\])?|-?\d[\w.:-]*|[<>!=]=?|[(),]|\S/g;

/** wanted is what is being typed at the end of a filter. */
export function wanted(before: string): Want {
  const words = [...before.matchAll(token)].map((m) => m[0]);
  const quoted = /^['"]/.test(words.at(-1) ?? '');
  const open = quoted && !/^(['"])(\\.|[^\\])*\1$/s.test(words.at(-1)!); // one that is closed is whole: a link may follow it
  const part = open || (words.length && !quoted && !/\s$/.test(before) && !/^([(),]|[<>!=]=?)$/.test(words.at(-1)!)) ? words.pop()! : '';
  let kind: Want['kind'] = 'field';
  let field = '';
  for (const word of words) {
    const upper = word.toUpperCase();
    if (kind === 'field') {
      if (['NOT', 'EXISTS', '('].includes(upper)) continue;
      field = word;
      kind = 'operator';
    } else if (kind === 'operator') {
      if (upper === 'NOT') continue;
      kind = upper === 'AND' || upper === 'OR' ? 'field' : upper === 'MATCHES' || upper === 'CONTAINS' ? 'none' : 'value';
    } else if (kind === 'value' || kind === 'none') {
      if (word === '(' || word === ',') continue;
      kind = 'link';
    } else if (word === ',') kind = 'value';
    else if (upper === 'AND' || upper === 'OR') kind = 'field';
  }
  return {kind, field, part};
}

export async function suggest(topic: Topic, range: {from?: string; to?: string}, before: string, signal: AbortSignal): Promise<Suggestion[]> {
  const want = wanted(before);
  const replaces = want.part.length;
  const words = (all: [string, string][]) => all.filter(([text]) => text.toLowerCase().startsWith(want.part.toLowerCase())).map(([text, note]) => ({text, note, replaces}));
  switch (want.kind) {
    case 'operator': return words(operators);
    case 'link': return words(linked);
    case 'none': return [];
    case 'field': {
      const {fields} = await get<Fields>(topicPath(topic.name, 'fields'), {from: range.from, to: range.to, prefix: want.part, limit: 12}, signal);
      return fields.map((f) => ({text: f.name, note: f.want, replaces}));
    }
    case 'value': {
      const prefix = want.part.replace(/^['"]/, '');
      const {values} = await get<Values>(topicPath(topic.name, 'values'), {from: range.from, to: range.to, field: want.field, prefix, limit: 12}, signal);
      return values.map((v) => ({text: condition(topic, '', v.value).slice(' = '.length), note: String(v.count), replaces}));
    }
  }
}
