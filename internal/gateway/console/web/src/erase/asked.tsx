// What is to be erased: users or a filter, of topics, in a range.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {EraseRequest, Topic} from '../api';
import {texts} from '../texts';
import {instant} from '../time';

type Props = {topics: Topic[]; busy: boolean; look: (requests: EraseRequest[]) => Promise<void>; changed: () => void};

/** usersIn are those of a text, one a line. */
export const usersIn = (text: string) => [...new Set(text.split('\n').map((u) => u.trim()).filter(Boolean))];

export function Asked({topics, busy, look, changed}: Props): JSX.Element {
  // Whom it names is not in the page's address, which a browser keeps.
  const [by, setBy] = useState<'user' | 'where'>('user');
  const [users, setUsers] = useState('');
  const [where, setWhere] = useState('');
  const [from, setFrom] = useState('');
  const [to, setTo] = useState('');
  const [reason, setReason] = useState('');
  const [purge, setPurge] = useState(false);
  const [off, setOff] = useState<string[]>([]);
  const on = topics.map((t) => t.name).filter((name) => !off.includes(name));
  const valid = on.length > 0 && (by === 'user' ? usersIn(users).length > 0 : where.trim() !== '') && [from, to].every((text) => text === '' || instant(text, Date.now()) !== undefined);
  const submit = (e: Event) => {
    e.preventDefault();
    if (!valid || busy) return;
    const named = by === 'user' ? {users: usersIn(users)} : {where: where.trim()};
    void look(on.map((topic) => ({topic, ...named, ...(from && {from}), ...(to && {to}), ...(reason.trim() && {reason: reason.trim()}), ...(purge && {purge})})));
  };
  const change = <T,>(set: (value: T) => void) => (value: T) => { set(value); changed(); };
  const text = (label: string, value: string, set: (v: string) => void, hint?: string) => (
    <label>{label}<input value={value} spellcheck={false} autocomplete="off" placeholder={hint} onInput={(e) => change(set)(e.currentTarget.value)} /></label>
  );
  return (
    <form class="card asked" aria-label={texts.erase.name} onSubmit={submit}>
      <div class="row" role="radiogroup" aria-label={texts.erase.by}>
        {(['user', 'where'] as const).map((kind) => (
          <label key={kind} class="row"><input type="radio" name="by" checked={by === kind} onChange={() => change(setBy)(kind)} />{texts.erase.byKind[kind]}</label>
        ))}
      </div>
      {by === 'user'
        ? <label>{texts.erase.users}<textarea rows={Math.min(Math.max(users.split('\n').length, 1), 8)} class="mono" value={users} spellcheck={false} autocomplete="off" placeholder={texts.erase.usersHint} onInput={(e) => change(setUsers)(e.currentTarget.value)}
            onKeyDown={(e) => { if (e.key === 'Enter' && !e.shiftKey && usersIn(users).length === 1 && !users.includes('\n')) submit(e); }} /></label>
        : text(texts.filter.name, where, setWhere, "attributes.ip = '203.0.113.7'")}
      <div class="pairs">
        {text(texts.range.from, from, setFrom, texts.erase.open)}
        {text(texts.range.to, to, setTo, texts.erase.open)}
        {text(texts.erase.reason, reason, setReason, texts.erase.reasonHint)}
      </div>
      <fieldset class="row">
        <legend>{texts.erase.topics}</legend>
        {topics.map((t) => (
          <label key={t.name} class="row"><input type="checkbox" checked={!off.includes(t.name)} onChange={(e) => change(setOff)(e.currentTarget.checked ? off.filter((n) => n !== t.name) : [...off, t.name])} />{t.name}{t.kind !== 'log' && <span class="faint">{t.kind}</span>}</label>
        ))}
      </fieldset>
      <label class="row" title={texts.erase.purgeHint}><input type="checkbox" checked={purge} onChange={(e) => change(setPurge)(e.currentTarget.checked)} />{texts.erase.purge}</label>
      <div><button class="button primary" disabled={!valid || busy}>{texts.erase.look}</button></div>
    </form>
  );
}
