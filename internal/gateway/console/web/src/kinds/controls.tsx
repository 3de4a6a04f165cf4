// What stands above the pages of kinds: the topic, and fields whose text is in the address once it is sent.
import type {ComponentChildren, JSX} from 'preact';
import {useLayoutEffect, useState} from 'preact/hooks';
import type {Topic} from '../api';
import {Empty} from '../notice';
import {TopicPicker} from '../search/topics';
import {texts} from '../texts';

/** Field is a text that counts when Enter is pressed or the field is left. */
export function Field({label, value, placeholder, wide, list, set}: {label: string; value: string; placeholder?: string; wide?: boolean; list?: string[]; set: (text: string) => void}): JSX.Element {
  const [text, setText] = useState(value);
  useLayoutEffect(() => setText(value), [value]); // before what is typed
  const id = 'list-' + label.replace(/\W/g, '-');
  const take = (next: string) => { if (next.trim() !== value) set(next.trim()); };
  return (
    <label class={'field' + (wide ? ' wide' : '')}>
      <span>{label}</span>
      <input value={text} placeholder={placeholder} spellcheck={false} autocomplete="off" list={list?.length ? id : undefined}
        onInput={(e) => setText(e.currentTarget.value)} onChange={(e) => take(e.currentTarget.value)} onKeyDown={(e) => e.key === 'Enter' && take(e.currentTarget.value)} />
      {list && list.length > 0 && <datalist id={id}>{list.map((v) => <option key={v} value={v} />)}</datalist>}
    </label>
  );
}

/** Choice is one of several words. */
export function Choice<T extends string>({label, value, of, set}: {label: string; value: T; of: readonly (readonly [T, string])[]; set: (value: T) => void}): JSX.Element {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(e) => set(e.currentTarget.value as T)}>{of.map(([v, words]) => <option key={v} value={v}>{words}</option>)}</select>
    </label>
  );
}

/** OfKind shows a page about a topic of a kind, or how to declare one. */
export function OfKind({topics, kind, asked, controls, children}: {topics: Topic[]; kind: string; asked: string | undefined; controls?: ComponentChildren; children: (topic: Topic) => ComponentChildren}): JSX.Element {
  const own = topics.filter((t) => t.kind === kind);
  const topic = own.find((t) => t.name === asked) ?? own[0];
  if (!topic) return <Empty title={texts.kinds.none(kind)} hint={texts.kinds.declare(kind)} />;
  return (
    <div class="search">
      <div class="controls">
        <TopicPicker topics={own} topic={topic} />
        {controls}
      </div>
      <div class="columns">{children(topic)}</div>
    </div>
  );
}

/** More is the foot of a list that comes page by page. */
export function More({more, busy, end}: {more?: () => void; busy: boolean; end: string}): JSX.Element {
  return <p class="list-foot">{busy ? texts.loading : more ? <button class="button small" onClick={more}>{texts.kinds.more}</button> : end}</p>;
}
