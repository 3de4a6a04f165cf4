// The topics of a search: one by a click, several by their boxes.
import type {JSX} from 'preact';
import {go} from '../address';
import type {Topic} from '../api';
import {usePopover} from '../popover';
import {texts} from '../texts';
import {maxTopics} from './ask';

export function TopicsPicker({topics, chosen}: {topics: Topic[]; chosen: Topic[]}): JSX.Element {
  const {open, setOpen, box} = usePopover();
  const names = chosen.map((t) => t.name);
  const to = (list: string[]) => go({query: {topic: list.join(','), event: '', facets: '', ...(names.length === 1 && list.length === 1 && {cols: '', widths: ''}), by: ''}});
  return (
    <div class="range topics" ref={box}>
      <button class="button" aria-haspopup="dialog" aria-expanded={open} aria-label={`${texts.topics.name}: ${names.join(', ')}`} onClick={() => setOpen(!open)}>
        <span class="cut">{names[0]}{names.length > 1 && ` +${names.length - 1}`}</span> <span aria-hidden="true" class="caret">{'\u25be'}</span>
      </button>
      {open && (
        <div class="popover menu" role="dialog" aria-label={texts.topics.name}>
          <ul>
            {topics.map((t) => {
              const on = names.includes(t.name);
              return (
                <li key={t.name}>
                  <input type="checkbox" aria-label={texts.topics.also(t.name)} checked={on} disabled={on ? names.length === 1 : names.length >= maxTopics} onChange={() => to(on ? names.filter((n) => n !== t.name) : [...names, t.name])} />
                  <button class="ghost entry" onClick={() => { setOpen(false); to([t.name]); }}>{t.name}{t.kind !== 'log' && <small>{t.kind}</small>}</button>
                </li>
              );
            })}
          </ul>
          <p class="faint">{texts.topics.hint(maxTopics)}</p>
        </div>
      )}
    </div>
  );
}
