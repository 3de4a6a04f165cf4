// SQL: the tables that may be read, statements in tabs, and what they answer.
import '../core';
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import {go} from '../address';
import type {SQLSchema} from '../api';
import {ask, get, Refused} from '../client';
import {useLoad} from '../load';
import {Problem} from '../notice';
import {save} from '../save';
import {Text} from '../shown';
import {texts} from '../texts';
import {bytes, number, seconds} from '../time';
import {AnswerView, type As} from './answer';
import {Editor, type Handle} from './editor';
import {placeOf} from './place';
import {type Answer, csv, newID, run} from './statement';
import {added, changed, closed, keepTabs, maxTabs, opened, type Tabs, withText} from './tabs';

/** State is what became of a tab's statement. of: the statement that an error is about. */
type State = {answer?: Answer; error?: Error; of?: string; running?: string; said?: string};

const noTables: SQLSchema['tables'] = [];

export function SQL({asked}: {asked: string}): JSX.Element {
  const schema = useLoad('schema', (signal) => get<SQLSchema>('v1/sql/schema', {}, signal));
  const [tabs, setTabs] = useState<Tabs>(() => opened(asked));
  const [states, setStates] = useState<Record<number, State>>({});
  const [as, show] = useState<As>('');
  const editor = useRef<Handle>(null);
  const text = tabs.all.find((t) => t.id === tabs.at)!.text;
  const {answer, error, of, running, said}: State = states[tabs.at] ?? {};
  // An address that is gone to while the page is shown, such as the one before, and not by the page itself.
  const told = useRef(asked);
  const tell = (sql: string) => {
    told.current = sql;
    go({query: {sql}}, true);
  };
  useEffect(() => {
    if (asked && asked !== told.current) setTabs((now) => withText(now, asked));
    told.current = asked;
  }, [asked]);
  useEffect(() => keepTabs(tabs), [tabs]);

  const does = async (f: (sql: string, id: string) => Promise<State>) => {
    if (running || !text.trim()) return;
    const [tab, id] = [tabs.at, newID()];
    const put = (s: State) => setStates((all) => ({...all, [tab]: s}));
    put({running: id, answer: states[tab]?.answer});
    tell(text);
    put(await f(text, id).catch((e: Error) => ({error: e, of: text})));
  };
  const execute = () => does(async (sql, id) => ({answer: await run(sql, id)}));
  const download = () => does(async (sql, id) => {
    const {file, cut} = await csv(sql, id);
    save(file, 'answer.csv');
    return {answer, said: cut ? texts.sql.cutFile(bytes(file.size)) : ''};
  });
  // The statement's own request answers that it was cancelled. One that has not begun, or has ended, is not known.
  const live = useRef(states);
  live.current = states;
  const cancel = async () => {
    const tab = tabs.at;
    for (const id = running; live.current[tab]?.running === id; await new Promise((next) => setTimeout(next, 300))) {
      try {
        return void (await ask(`v1/sql/${id}`, {}, {method: 'DELETE'}));
      } catch (e) {
        if (!(e instanceof Refused && e.status === 404)) return setStates((all) => ({...all, [tab]: {...all[tab], error: e as Error}}));
      }
    }
  };
  const wrong = useMemo(() => (error && of === text ? placeOf(error.message, text) : undefined), [error, of, text]);
  const refusedAccess = error instanceof Refused && (error.status === 401 || error.status === 403);
  const insert = (name: string) => editor.current?.insert(name);
  return (
    <div class="columns sql">
      <aside class="facets" aria-label={texts.sql.tables}>
        {schema.error && !schema.value && <p class="faint"><Text text={schema.error.message} line /></p>}
        {(schema.value?.tables ?? []).map((t) => (
          <div key={t.name} class="facet-of"><details>
            <summary>{t.name}</summary>
            <ul>{t.columns.map((c) => <li key={c.name}><button class="facet" title={c.comment ?? ''} aria-label={`${texts.sql.insert(c.name)} ${c.type}`} onClick={() => insert(c.name)}><span class="value">{c.name}</span>{' '}<span class="count">{c.type}</span></button></li>)}</ul>
          </details>
          <button class="ghost small" aria-label={texts.sql.insert(t.name)} onClick={() => insert(t.name)}>+</button>
          </div>
        ))}
      </aside>
      <section class="results" aria-label={texts.sql.name}>
        <div class="statement">
          <div class="sql-tabs">
            <div class="row" role="tablist" aria-label={texts.sql.tabs}>
              {tabs.all.map((t, i) => <button key={t.id} class="ghost small" role="tab" aria-selected={t.id === tabs.at} onClick={() => { setTabs({...tabs, at: t.id}); tell(t.text); }}>{i + 1}{t.text.trim() ? <> <Text text={firstWords(t.text)} line /></> : ''}{states[t.id]?.running ? ' \u2026' : ''}</button>)}
            </div>
            {tabs.all.length < maxTabs && <button class="ghost small" aria-label={texts.sql.newTab} title={texts.sql.newTab} onClick={() => { setTabs(added(tabs)); tell(''); }}>+</button>}
            {tabs.all.length > 1 && <button class="ghost small" aria-label={texts.sql.closeTab(tabs.all.findIndex((t) => t.id === tabs.at) + 1)} onClick={() => { const next = closed(tabs, tabs.at); setTabs(next); tell(next.all.find((o) => o.id === next.at)!.text); }}>{'\u2715'}</button>}
          </div>
          <Editor key={tabs.at} text={text} tables={schema.value?.tables ?? noTables} wrong={wrong} handle={editor} change={(next) => setTabs((all) => changed(all, next))} run={execute} />
          <div class="row">
            <button class="button primary" title={texts.sql.runHint} disabled={!!running || !text.trim()} onClick={execute}>{texts.sql.run}</button>
            {running && <button class="button" onClick={cancel}>{texts.sql.cancel}</button>}
            <button class="button" disabled={!!running || !text.trim()} onClick={download}>{texts.sql.download}</button>
            <span class="faint" role="status">{running ? texts.sql.running : said || (answer ? statistics(answer) : '')}</span>
          </div>
        </div>
        {refusedAccess ? <Problem error={error} again={execute} />
          : error ? <div class="wrong-statement" role="alert"><pre><Text text={error.message} /></pre>{error instanceof Refused && error.hint && <p class="faint"><Text text={error.hint} line /></p>}</div>
          : answer && !running && <AnswerView answer={answer} as={as} show={show} />}
      </section>
    </div>
  );
}

const firstWords = (text: string) => text.trim().replace(/\s+/g, ' ').slice(0, 22);

const statistics = (a: Answer) => texts.sql.statistics(number(a.rows.length) + (a.cut ? '+' : ''), seconds(a.seconds), number(a.readRows), bytes(a.readBytes));
