// Text of events. Characters that draw nothing, or that turn the direction of what follows, are shown by their numbers.
import type {JSX} from 'preact';

const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|\p{Surrogate}/u;
const every = new RegExp(hidden.source, 'gu');

const code = (c: string) => 'U+' + c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');

/** plain is a text for where no element can be: a tooltip, an option. */
export const plain = (text: string) => text.replace(every, code);

/** Text shows a text as it is; line: as one line. */
export function Text({text, line}: {text: string; line?: boolean}): JSX.Element {
  const one = line ? text.replace(/\r?\n/g, '\u23ce').replace(/\t/g, '  ') : text.replace(/\r\n/g, '\n');
  if (!hidden.test(one)) return <bdi>{one}</bdi>;
  const out: (string | JSX.Element)[] = [];
  let end = 0;
  for (const found of one.matchAll(every)) {
    out.push(one.slice(end, found.index), <span class="control">{code(found[0])}</span>);
    end = found.index + found[0].length;
  }
  out.push(one.slice(end));
  return <bdi>{out}</bdi>;
}
