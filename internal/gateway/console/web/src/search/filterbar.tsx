// The filter: one line in the language of --where, with suggestions, and with what the server refuses underlined.
import type {JSX, RefObject} from 'preact';
import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import type {Topic} from '../api';
import type {Refused} from '../client';
import {Text} from '../shown';
import {texts} from '../texts';
import {type Suggestion, suggest} from './suggest';

const pause = 120; // milliseconds after a key: who types on asks the server nothing

type Props = {
  input: RefObject<HTMLInputElement | null>;
  topic: Topic;
  where: string;
  range: {from?: string; to?: string};
  wrong: Refused | undefined;
  run: (where: string) => void;
};

export function FilterBar({input, topic, where, range, wrong, run}: Props): JSX.Element {
  const [text, setText] = useState(where);
  const [found, setFound] = useState<Suggestion[]>([]);
  const [at, setAt] = useState(-1);
  const [scroll, setScroll] = useState(0);
  const stop = useRef<AbortController | undefined>(undefined);
  useLayoutEffect(() => setText(where), [where]); // before what is typed

  const look = async (value: string, caret: number) => {
    stop.current?.abort();
    const own = (stop.current = new AbortController());
    await new Promise((done) => setTimeout(done, pause));
    const all = own.signal.aborted ? [] : await suggest(topic, range, value.slice(0, caret), own.signal).catch(() => []);
    if (own.signal.aborted) return;
    setFound(all);
    setAt(-1);
  };
  const close = () => {
    stop.current?.abort();
    setFound([]);
  };
  const take = (s: Suggestion) => {
    const caret = input.current?.selectionStart ?? text.length;
    const next = text.slice(0, caret - s.replaces) + s.text + ' ';
    const all = next + text.slice(caret).trimStart();
    setText(all);
    requestAnimationFrame(() => {
      input.current?.setSelectionRange(next.length, next.length);
      void look(all, next.length);
    });
  };
  const key = (e: KeyboardEvent) => {
    if (e.key === 'Enter') {
      e.preventDefault();
      if (at >= 0 && found[at]) return take(found[at]);
      close();
      const asked = plain(text.trim());
      setText(asked); // as the address has it
      return run(asked);
    }
    if (e.key === 'Tab' && at >= 0 && found[at]) {
      e.preventDefault();
      return take(found[at]);
    }
    if (e.key === 'Escape') return found.length ? close() : input.current?.blur();
    const step = {ArrowDown: 1, ArrowUp: -1}[e.key];
    if (step && found.length) {
      e.preventDefault();
      setAt((at + step + found.length + (at < 0 && step < 0 ? 1 : 0)) % found.length);
    }
  };
  const bad = wrong && text === where ? wrong : undefined;
  return (
    <div class={'filter' + (bad ? ' wrong' : '')}>
      <div class="filter-field">
        <div class="filter-under" aria-hidden="true"><span style={{transform: `translateX(${-scroll}px)`}}>{bad && <Marked text={text} column={bad.column} />}</span></div>
        <input ref={input} role="combobox" aria-label={texts.filter.name} aria-autocomplete="list" aria-expanded={found.length > 0} aria-controls="suggestions"
          aria-activedescendant={at >= 0 ? 'suggestion-' + at : undefined} aria-invalid={!!bad} aria-describedby={bad ? 'filter-problem' : undefined}
          placeholder={texts.filter.example} value={text} spellcheck={false} autocomplete="off" autocapitalize="off"
          onInput={(e) => { setText(e.currentTarget.value); void look(e.currentTarget.value, e.currentTarget.selectionStart ?? 0); }}
          onFocus={(e) => void look(e.currentTarget.value, e.currentTarget.selectionStart ?? 0)}
          onScroll={(e) => setScroll(e.currentTarget.scrollLeft)} onBlur={close} onKeyDown={key} />
        {text && <button class="ghost clear" aria-label={texts.filter.clear} onMouseDown={(e) => e.preventDefault()} onClick={() => { setText(''); run(''); }}>{'\u2715'}</button>}
      </div>
      {bad && <p class="problem" id="filter-problem" role="alert"><Text text={bad.message} line /></p>}
      {found.length > 0 && (
        <ul class="popover suggestions" role="listbox" id="suggestions" aria-label={texts.filter.suggestions}>
          {found.map((s, i) => (
            <li key={s.text} id={'suggestion-' + i} role="option" aria-selected={i === at} onMouseDown={(e) => { e.preventDefault(); take(s); }}>
              <span><Text text={s.text} line /></span><small>{s.note}</small>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

/** plain makes words without an operator what messages contain. */
const plain = (text: string) => (/^[\w.:@/-]+( [\w.:@/-]+)*$/.test(text) && !/(^| )(not|and|or|in|exists|matches|contains) /i.test(text) ? `message contains '${text}'` : text);

/** Marked underlines what is at a column: a word, or one character. */
function Marked({text, column}: {text: string; column: number}): JSX.Element {
  const all = [...text];
  const begin = Math.min(column - 1, all.length);
  const word = /^[\w.'"]+/.exec(all.slice(begin).join(''))?.[0] ?? all[begin] ?? '\u00a0';
  return <>{all.slice(0, begin).join('')}<u>{word}</u></>;
}
