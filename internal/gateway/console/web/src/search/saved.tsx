// Searches and charts under a name, which all see who may read their topics, and recent searches, which this browser alone has.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {go} from '../address';
import type {SavedSearch, SavedSearches} from '../api';
import {ask, get, post} from '../client';
import {useLoad} from '../load';
import {Problem} from '../notice';
import {usePopover} from '../popover';
import {plain, Text} from '../shown';
import {texts} from '../texts';
import {forgetRecent, type Kept, recent} from './recent';

type Kind = '' | 'charts';
type Props = {kind: Kind; now: Kept; query: Record<string, string>};

/** What of the address says how a search is shown, and which charts. */
const shownBy = {'': ['by', 'step', 'cols', 'widths', 'facets', 'wrap'], charts: ['c']};

export function SavedMenu(of: Props): JSX.Element {
  const {open, setOpen, box} = usePopover();
  return (
    <div class="range saved" ref={box}>
      <button class="button" aria-haspopup="dialog" aria-expanded={open} onClick={() => setOpen(!open)}>{texts.saved.names[of.kind]} <span aria-hidden="true" class="caret">{'\u25be'}</span></button>
      {open && <Menu {...of} close={() => setOpen(false)} />}
    </div>
  );
}

function Menu({kind, now, query, close}: Props & {close: () => void}): JSX.Element {
  const all = useLoad('searches', (signal) => get<SavedSearches>('v1/searches', {}, signal));
  const [latest, setLatest] = useState(kind ? [] : recent());
  const [name, setName] = useState('');
  const [removing, setRemoving] = useState('');
  const [error, setError] = useState<Error>();
  const path = (of: string) => `v1/searches/${encodeURIComponent(of)}`;
  const [busy, setBusy] = useState(false); // one change after the other: they may overtake each other on their way
  const change = (f: () => Promise<unknown>) => {
    setBusy(true);
    return f().then(() => { setError(undefined); all.again(); }, setError).finally(() => setBusy(false));
  };
  const show = (one: Kept, shown: Record<string, string> = {}) => {
    close();
    const view = Object.fromEntries(shownBy[kind].map((n) => [n, shown[n] ?? '']));
    go({query: {...view, from: one.from, to: one.to, ...(kind ? {} : {topic: one.topics.join(','), where: one.where, event: ''})}});
  };
  const save = (e: Event) => {
    e.preventDefault();
    const shown = Object.fromEntries(shownBy[kind].flatMap((n) => (query[n] ? [[n, query[n]!]] : [])));
    void change(() => post(path(name.trim()), {}, {...now, kind, shown}, 'PUT').then(() => setName('')));
  };
  const saved = (all.value?.searches ?? []).filter((s) => (s.kind ?? '') === kind).map((s) => ({...s, name: s.name ?? ''}));
  const there = saved.some((s) => s.name === name.trim());
  return (
    <div class="popover menu" role="dialog" aria-label={texts.saved.names[kind]}>
      <form class="row" onSubmit={save}>
        <input aria-label={texts.saved.as[kind]} placeholder={texts.saved.as[kind]} value={name} maxLength={120} autocomplete="off" onInput={(e) => setName(e.currentTarget.value)} />
        <button class="button primary" disabled={busy || !name.trim() || (!!kind && !query['c'])}>{there ? texts.saved.replace : texts.saved.save}</button>
      </form>
      {error && <Problem error={error} again={() => setError(undefined)} />}
      {all.error && !all.value && <p class="faint"><Text text={all.error.message} line /></p>}
      {saved.length > 0 && <h3>{texts.saved.saved}</h3>}
      <ul>
        {saved.map((s) => (
          <li key={s.name}>
            <button class="ghost entry" title={plain(described(kept(s)))} onClick={() => show(kept(s), s.shown)}><Text text={s.name} line /><small><Text text={described(kept(s))} line /></small></button>
            {removing === s.name
              ? <button class="button small danger" disabled={busy} onClick={() => change(() => ask(path(s.name), {}, {method: 'DELETE'}).then(() => setRemoving('')))}>{texts.saved.sure}</button>
              : <button class="ghost small" aria-label={texts.saved.remove(s.name)} onClick={() => setRemoving(s.name)}>{'\u2715'}</button>}
          </li>
        ))}
      </ul>
      {latest.length > 0 && <h3 class="row">{texts.saved.recent}<button class="ghost small end" onClick={() => { forgetRecent(); setLatest([]); }}>{texts.saved.forget}</button></h3>}
      <ul>
        {latest.map((one) => <li key={described(one)}><button class="ghost entry" onClick={() => show(one)}><span class="mono"><Text text={one.where} line /></span><small>{one.topics.join(', ')}</small></button></li>)}
      </ul>
      {!latest.length && all.value && !saved.length && <p class="faint">{texts.saved.none[kind]}</p>}
    </div>
  );
}

const kept = (s: SavedSearch): Kept => ({topics: s.topics, from: s.from ?? '', to: s.to ?? '', where: s.where ?? ''});

const described = (one: Kept) => [one.topics.join(', '), one.where].filter(Boolean).join(' \u00b7 ');
