import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {go, read, useAddress, write} from './address';
import type {Shards, Topics} from './api';
import {address as at, get} from './client';
import {typing, useKeys} from './keys';
import {isKindPage, kindViews, shownKinds} from './kinds';
import {lazy} from './lazy';
import {answersAgain, useEvery, useLoad} from './load';
import {Empty, Problem, TokenForm} from './notice';
import {maxTopics} from './search/ask';
import {Search} from './search/search';
import {texts} from './texts';
import {applyTheme, nextTheme, theme} from './theme';
import {inUTC, setUTC} from './time';
import {token} from './token';

const Health = lazy(() => import('./health').then((m) => m.Health));
const Tail = lazy(() => import('./tail').then((m) => m.Tail));
const Proof = lazy(() => import('./proof').then((m) => m.Proof));
const Send = lazy(() => import('./send').then((m) => m.Send));
const TopicsPage = lazy(() => import('./topics/topics').then((m) => m.Topics));
const Erase = lazy(() => import('./erase/erase').then((m) => m.Erase));

const pages = ['search', 'tail', 'sql', 'proof', 'erase', 'topics', 'health', 'send'] as const;
type Page = (typeof pages)[number];

export function App(): JSX.Element {
  const address = useAddress();
  const topics = useLoad('topics', (signal) => get<Topics>('v1/topics', {}, signal));
  const [dialog, setDialog] = useState<'' | 'keys' | 'token'>('');
  const [, redraw] = useState(0);
  const away = useAway();
  const kind = isKindPage(address.page) ? address.page : undefined;
  const page: Page | undefined = kind ? undefined : (pages.find((p) => p === address.page) ?? 'search');
  const names = topics.value?.topics ?? [];
  const chosen = [...new Set((address.query['topic'] ?? '').split(','))].flatMap((name) => names.find((t) => t.name === name) ?? []).slice(0, maxTopics);
  const topic = chosen[0] ?? names.find((t) => t.kind === 'log') ?? names[0];

  // An empty Almanac greets with how to send.
  useEffect(() => {
    if (address.page !== '' || !topics.value) return;
    const stop = new AbortController(); // one who is elsewhere by then stays there
    const to = (page: string) => stop.signal.aborted || read().page !== '' || go({page}, true);
    get<Shards>('v1/shards', {}, stop.signal).then((s) => to(s.shards.length ? 'search' : 'send'), () => to('search'));
    return () => stop.abort();
  }, [topics.value, address.page === '']);

  const KindView = kindViews[kind ?? 'usage'];
  const waiting = useRef(false);
  useKeys((key) => {
    if (waiting.current) {
      waiting.current = false;
      const to = {s: 'search', t: 'tail', q: 'sql', p: 'proof', h: 'health', i: 'send', e: 'erase', ...kindKeys}[key];
      if (to) return go({page: to, query: isKindPage(to) ? ofTopic(address.query) : keep(address.query)}), true;
    }
    if (key === 'g') return (waiting.current = true);
    if (key === '?') return setDialog('keys'), true;
    return false;
  }, true);

  // What was declared meanwhile is there on the next page, whose name is seen among those of all on a narrow screen too.
  useEffect(() => {
    if (topics.value) topics.again();
    document.querySelector('nav [aria-current]')?.scrollIntoView({block: 'nearest', inline: 'center'});
  }, [address.page]);

  const again = () => {
    setDialog('');
    topics.again();
    redraw((n) => n + 1);
  };
  return (
    <div class="app">
      <header class="top">
        <a class="brand" href={write({page: 'search', query: keep(address.query)})}>
          <Mark />
          <span>{texts.name}</span>
        </a>
        <nav aria-label={texts.name}>
          {pages.map((p) => (
            <a key={p} href={write({page: p, query: keep(address.query)})} aria-current={p === page ? 'page' : undefined}>{texts.pages[p]}</a>
          ))}
          {shownKinds(names, address.page).map((p) => (
            <a key={p} href={write({page: p, query: ofTopic(address.query)})} aria-current={p === kind ? 'page' : undefined}>{texts.kinds.pages[p]}</a>
          ))}
        </nav>
        <div class="top-end">
          <button class="ghost wide-only" title={texts.zone.title} onClick={() => { setUTC(!inUTC()); redraw((n) => n + 1); }}>{inUTC() ? texts.zone.utc : texts.zone.local}</button>
          <button class="ghost wide-only" onClick={() => setDialog('token')}>{token() ? texts.token.have : texts.token.none}</button>
          <ThemeButton />
          <button class="ghost" aria-label={texts.keysTitle} onClick={() => setDialog('keys')}>?</button>
        </div>
      </header>
      {away && <div class="banner" role="alert"><b>{texts.unreachable}</b> {texts.unreachableHint}</div>}
      <main>
        {page === 'health' ? <Health />
          : page === 'sql' ? <SQL asked={address.query['sql'] ?? ''} />
          : topics.error && !topics.value ? <Problem error={topics.error} again={again} />
          : !topics.value ? <div class="loading" role="status">{texts.loading}</div>
          : kind ? <KindView key={kind} topics={names} query={address.query} />
          : page === 'topics' ? <TopicsPage topics={names} changed={topics.again} />
          : !topic ? <Empty title={texts.noTopics} hint={texts.noTopicsHint}><a class="button primary" href={write({page: 'topics', query: {}})}>{texts.topicsPage.new}</a></Empty>
          : page === 'tail' ? <Tail key={topic.name + address.query['where']} topics={names} topic={topic} where={address.query['where'] ?? ''} />
          : page === 'proof' ? <Proof topics={names} />
          : page === 'erase' ? <Erase topics={names} query={address.query} />
          : page === 'send' ? <Send topic={topic} topics={names} />
          : address.page === '' ? <div class="loading" role="status">{texts.loading}</div>
          : <Search all={names} topics={chosen.length ? chosen : [topic]} query={address.query} />}
      </main>
      {dialog && (
        <Dialog title={dialog === 'keys' ? texts.keysTitle : texts.token.label} close={() => setDialog('')}>
          {dialog === 'keys' ? <Keys /> : <TokenForm done={() => { again(); answersAgain(); }} />}
        </Dialog>
      )}
    </div>
  );
}

/** SQL has an editor that is as large as all else. */
const SQL = lazy(() => import('./sql/sql').then((p) => p.SQL));

const kindKeys: Record<string, string> = {c: 'charts', d: 'documents', m: 'timers', r: 'trails', u: 'usage'};

/** What goes along to a page of a kind. */
const ofTopic = (q: Record<string, string>) => ({topic: q['topic'] ?? ''});

/** What goes along from page to page. */
const keep = (q: Record<string, string>) => Object.fromEntries(['topic', 'where', 'from', 'to'].flatMap((n) => (q[n] ? [[n, q[n]]] : [])));

function useAway(): boolean {
  const [away, set] = useState(false);
  const was = useRef(false);
  // What does not answer is said within three seconds: that it is asked, and that it hangs, may be just before and after.
  useEvery(1000, () => {
    const hangs = new AbortController();
    const timer = setTimeout(() => hangs.abort(), 1800);
    fetch(at('healthz'), {cache: 'no-store', signal: hangs.signal}).then(
      () => {
        if (was.current) answersAgain();
        set((was.current = false));
      },
      () => set((was.current = true)),
    ).finally(() => clearTimeout(timer));
  });
  return away;
}

function Mark(): JSX.Element {
  return (
    <svg width="20" height="20" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" class="mark" />
      <path d="M8 22h3v-6H8zm6.5 0h3V9h-3zM21 22h3v-9h-3z" fill="#fff" />
    </svg>
  );
}

function ThemeButton(): JSX.Element {
  const [now, set] = useState(theme());
  const next = () => {
    const to = nextTheme(now);
    applyTheme(to);
    set(to);
  };
  return <button class="ghost" title={texts.theme[now]} aria-label={texts.theme[now]} onClick={next}>{now === 'auto' ? '\u25d0' : now === 'light' ? '\u2600' : '\u263e'}</button>;
}

function Keys(): JSX.Element {
  return (
    <dl class="keys">
      {texts.keys.map(([key, what]) => (
        <div key={key}>
          <dt>{key!.split('  ').map((k) => <kbd key={k}>{k}</kbd>)}</dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  );
}

function Dialog({title, close, children}: {title: string; close: () => void; children: JSX.Element}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-label={title} onClose={close} onKeyDown={(e) => typing(e) || e.stopPropagation()} onClick={(e) => e.target === dialog.current && close()}>
      <div class="dialog">
        <header><h2>{title}</h2><button class="ghost" aria-label={texts.close} onClick={close}>{'\u2715'}</button></header>
        {children}
      </div>
    </dialog>
  );
}
