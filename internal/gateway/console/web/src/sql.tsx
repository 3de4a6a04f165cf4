// SQL: the tables that may be read, a statement, and what it answers.
import type {JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {go} from './address';
import type {SQLSchema} from './api';
import {ask, get, Refused} from './client';
import {textOf} from './events';
import {useLoad} from './load';
import {Problem} from './notice';
import {save} from './save';
import {Text} from './shown';
import {type Answer, csv, newID, run} from './statement';
import {texts} from './texts';
import {bytes, number, seconds} from './time';

const maxCell = 300; // characters of a cell that are drawn

export function SQL({asked}: {asked: string}): JSX.Element {
  const schema = useLoad('schema', (signal) => get<SQLSchema>('v1/sql/schema', {}, signal));
  const [text, setText] = useState(asked);
  const [answer, setAnswer] = useState<Answer>();
  const [error, setError] = useState<Error>();
  const [running, setRunning] = useState('');
  const [said, setSaid] = useState('');
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => setText(asked), [asked]);

  const does = async (f: (sql: string, id: string) => Promise<void>) => {
    if (running || !text.trim()) return;
    const id = newID();
    setRunning(id);
    setError(undefined);
    setSaid('');
    go({query: {sql: text}}, true);
    await f(text, id).catch(setError);
    setRunning('');
  };
  const execute = () => does(async (sql, id) => {
    setAnswer(undefined);
    setAnswer(await run(sql, id));
  });
  const download = () => does(async (sql, id) => {
    const {file, cut} = await csv(sql, id);
    save(file, 'answer.csv');
    setSaid(cut ? texts.sql.cutFile(bytes(file.size)) : '');
  });
  // The statement's own request answers that it was cancelled. One that has not begun, or has ended, is not known.
  const live = useRef('');
  live.current = running;
  const cancel = async () => {
    for (const id = running; live.current === id; await new Promise((next) => setTimeout(next, 300))) {
      try {
        return void (await ask(`v1/sql/${id}`, {}, {method: 'DELETE'}));
      } catch (e) {
        if (!(e instanceof Refused && e.status === 404)) return setError(e as Error);
      }
    }
  };
  const insert = (name: string) => {
    const a = area.current!;
    a.setRangeText(name, a.selectionStart, a.selectionEnd, 'end');
    setText(a.value);
    a.focus();
  };
  const key = (e: KeyboardEvent) => {
    if (e.key !== 'Enter' || !(e.ctrlKey || e.metaKey)) return;
    e.preventDefault();
    void execute();
  };
  const refusedAccess = error instanceof Refused && (error.status === 401 || error.status === 403);
  return (
    <div class="columns sql">
      <aside class="facets" aria-label={texts.sql.tables}>
        {schema.error && !schema.value && <p class="faint">{schema.error.message}</p>}
        {(schema.value?.tables ?? []).map((t) => (
          <details key={t.name}>
            <summary><span>{t.name}</span><button class="ghost small" aria-label={texts.sql.insert(t.name)} onClick={(e) => { e.preventDefault(); insert(t.name); }}>+</button></summary>
            <ul>{t.columns.map((c) => <li key={c.name}><button class="facet" title={c.comment ?? ''} aria-label={texts.sql.insert(c.name)} onClick={() => insert(c.name)}><span class="value">{c.name}</span><span class="count">{c.type}</span></button></li>)}</ul>
          </details>
        ))}
      </aside>
      <section class="results" aria-label={texts.sql.name}>
        <div class="statement">
          <textarea ref={area} aria-label={texts.sql.statement} rows={7} spellcheck={false} autocomplete="off" placeholder={texts.sql.example} value={text} onInput={(e) => setText(e.currentTarget.value)} onKeyDown={key} />
          <div class="row">
            <button class="button primary" title={texts.sql.runHint} disabled={!!running || !text.trim()} onClick={execute}>{texts.sql.run}</button>
            {running && <button class="button" onClick={cancel}>{texts.sql.cancel}</button>}
            <button class="button" disabled={!!running || !text.trim()} onClick={download}>{texts.sql.download}</button>
            <span class="faint" role="status">{running ? texts.sql.running : said || (answer ? statistics(answer) : '')}</span>
          </div>
        </div>
        {refusedAccess ? <Problem error={error} again={execute} />
          : error ? <div class="wrong-statement" role="alert"><pre>{error.message}</pre>{error instanceof Refused && error.hint && <p class="faint">{error.hint}</p>}</div>
          : answer && <Table answer={answer} />}
      </section>
    </div>
  );
}

const statistics = (a: Answer) => texts.sql.statistics(number(a.rows.length) + (a.cut ? '+' : ''), seconds(a.seconds), number(a.readRows), bytes(a.readBytes));

function Table({answer}: {answer: Answer}): JSX.Element {
  const right = answer.types.map((t) => /^(Nullable\()?(U?Int|Float|Decimal)/.test(t));
  const cell = (value: unknown) => (value === null ? <i class="faint">NULL</i> : <Text text={short(textOf(value))} line />);
  return (
    <div class="answer">
      <table aria-label={texts.sql.answer}>
        <thead><tr>{answer.names.map((n, i) => <th key={i} class={right[i] ? 'n' : ''} title={answer.types[i]}>{n}</th>)}</tr></thead>
        <tbody>{answer.rows.map((r, y) => <tr key={y}>{r.map((v, i) => <td key={i} class={right[i] ? 'n' : ''} title={textOf(v).length > maxCell ? texts.sql.cutCell : undefined}>{cell(v)}</td>)}</tr>)}</tbody>
      </table>
      {answer.cut && <p class="list-foot">{texts.sql.cut}</p>}
    </div>
  );
}

const short = (text: string) => (text.length > maxCell ? text.slice(0, maxCell) + '\u2026' : text);
