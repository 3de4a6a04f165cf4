// Documents: listed by path, one of them, its history, and the difference between two of its versions.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {go} from '../address';
import type {Document as Answered, DocumentPage, Topic} from '../api';
import {get} from '../client';
import {textOf} from '../events';
import {useLoad} from '../load';
import {Copy, Empty, Problem} from '../notice';
import {usePaged} from '../paged';
import {Text} from '../shown';
import {texts} from '../texts';
import {longTime, number} from '../time';
import {Beside} from './beside';
import {Field, More, OfKind} from './controls';
import {written} from './difference';
import {Table} from './list';

type Document = NonNullable<Answered>;
const pageSize = 100;
const maxRows = 5000; // that the list holds
const maxPreview = 160; // characters of a body in the list

const at = (text: string) => longTime(Date.parse(text));

export function Documents({topics, query}: {topics: Topic[]; query: Record<string, string>}): JSX.Element {
  const path = query['path'] ?? '';
  const below = query['exact'] !== '1';
  const where = query['where'] ?? '';
  const doc = query['doc'] ?? '';
  const controls = (
    <>
      <Field label={texts.documents.path} value={path} placeholder={texts.documents.anyPath} set={(text) => go({query: {path: text, doc: ''}})} />
      <label class="tick"><input type="checkbox" checked={below} onChange={() => go({query: {exact: below ? '1' : ''}})} /> {texts.documents.below}</label>
      <Field label={texts.filter.name} wide value={where} placeholder={texts.documents.example} set={(text) => go({query: {where: text, doc: ''}})} />
      <Field label={texts.documents.id} value={doc} placeholder={texts.documents.byID} set={(text) => go({query: {doc: text}})} />
    </>
  );
  return (
    <OfKind topics={topics} kind="document" asked={query['topic']} controls={controls}>
      {(topic) => (
        <>
          <List topic={topic} path={path} below={below} where={where} doc={doc} />
          {doc && <One key={topic.name + '/' + doc} topic={topic} id={doc} older={Number(query['a'])} newer={Number(query['b'])} />}
        </>
      )}
    </OfKind>
  );
}

function List({topic, path, below, where, doc}: {topic: Topic; path: string; below: boolean; where: string; doc: string}): JSX.Element {
  // Without a path all are listed; with an exact one that is empty, those that have none.
  const of = path ? {path, below: below ? 'true' : undefined} : {};
  const list = usePaged<Document>([topic.name, path, below, where].join('\0'), maxRows, (cursor, signal) =>
    get<DocumentPage>(`v1/documents/${encodeURIComponent(topic.name)}` + (path || below ? '' : '?path='), {...of, where, limit: pageSize, cursor}, signal).then((p) => ({rows: p.documents.filter((d): d is Document => !!d), cursor: p.cursor})));
  return (
    <section class="results" aria-label={texts.documents.name}>
      {list.error && !list.rows.length ? <Problem error={list.error} again={list.again} />
        : list.loaded && !list.rows.length ? <Empty title={texts.documents.none} hint={texts.documents.noneHint(topic.name)} />
        : <Table label={texts.documents.name} rows={list.rows} keyOf={(d) => d.id} open={doc} choose={(d) => go({query: {doc: d?.id ?? '', a: '', b: ''}})}
          columns={[
            {name: texts.documents.id, cell: (d) => <code><Text text={d.id} line /></code>},
            {name: texts.documents.path, cell: (d) => <button class="link" title={texts.documents.only(d.path)} onClick={(e) => { e.stopPropagation(); go({query: {path: d.path, doc: ''}}); }}><Text text={d.path || '\u2013'} line /></button>},
            {name: texts.documents.version, right: true, cell: (d) => number(d.version)},
            {name: texts.documents.changed, narrow: false, cell: (d) => <span class="faint nums">{at(d.changed)}</span>},
            {name: texts.documents.body, grow: true, narrow: false, cell: (d) => <span class="mono soft"><Text text={textOf(d.body).slice(0, maxPreview)} line /></span>},
          ]}
          foot={list.error ? <Problem error={list.error} again={list.more} /> : <More more={list.more} busy={list.busy} end={texts.documents.all(number(list.rows.length))} />} />}
    </section>
  );
}

/** One is a document: what it is now, its versions, and two of them beside each other. */
function One({topic, id, older, newer}: {topic: Topic; id: string; older: number; newer: number}): JSX.Element {
  const history = useLoad(topic.name + '/' + id, (signal) => get<DocumentPage>(`v1/documents/${encodeURIComponent(topic.name)}/${encodeURIComponent(id)}/history`, {}, signal));
  const all = (history.value?.documents ?? []).filter((d): d is Document => !!d);
  const last = all.at(-1);
  const b = all.find((d) => d.version === newer) ?? last;
  const a = all.find((d) => d.version === older) ?? all[all.indexOf(b!) - 1];
  const [asked, setWhole] = useState<boolean>();
  const whole = asked ?? all.length === 1;
  const name = (d: Document | undefined) => (d ? `${texts.documents.version} ${d.version}, ${at(d.changed)}` : texts.documents.before);
  const pick = (which: 'a' | 'b', d: Document) => go({query: {a: String(a?.version ?? ''), b: String(b?.version ?? ''), [which]: String(d.version)}}, true);
  return (
    <aside class="drawer broad" aria-label={texts.documents.one}>
      <header>
        <b><code><Text text={id} line /></code></b>
        {last && <span class="faint"><Text text={last.path || texts.documents.noPath} line /></span>}
        {last?.op === 'removed' && <span class="warned">{texts.documents.removed}</span>}
        <span class="row end">
          {last && <button class="ghost small" aria-pressed={whole} onClick={() => setWhole(!whole)}>{texts.documents.body}</button>}
          {last && <Copy label={texts.event.copyJSON} text={() => JSON.stringify(last.body ?? null, null, 2)} />}
          <button class="ghost" aria-label={texts.close} onClick={() => go({query: {doc: '', a: '', b: ''}})}>{'\u2715'}</button>
        </span>
      </header>
      <div class="drawer-body">
        {history.error && !history.value ? <Problem error={history.error} again={history.again} /> : !last ? <p class="faint">{texts.loading}</p> : (
          <>
            {whole && <pre class="whole"><Text text={written(last.body).join('\n') || texts.documents.noBody} /></pre>}
            <h3>{texts.documents.history}</h3>
            <div class="scrolled" tabIndex={0}>
              <table aria-label={texts.documents.history} class="versions">
                <thead><tr><th>{texts.documents.left}</th><th>{texts.documents.right}</th><th class="n">{texts.documents.version}</th><th>{texts.documents.what}</th><th>{texts.documents.changed}</th><th>{texts.documents.by}</th></tr></thead>
                <tbody>
                  {[...all].reverse().map((d) => (
                    <tr key={d.version}>
                      <td><input type="radio" name="older" aria-label={`${texts.documents.left} ${d.version}`} checked={d === a} disabled={d === b} onChange={() => pick('a', d)} /></td>
                      <td><input type="radio" name="newer" aria-label={`${texts.documents.right} ${d.version}`} checked={d === b} disabled={d === a} onChange={() => pick('b', d)} /></td>
                      <td class="n">{d.version}</td><td>{d.op}</td><td class="nums">{at(d.changed)}</td><td><Text text={d.by ?? ''} line /></td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
            <h3>{texts.documents.difference}</h3>
            <Beside label={texts.documents.difference} left={{name: name(a), value: a?.body, none: texts.documents.noBody}} right={{name: name(b), value: b?.body, none: texts.documents.noBody}} />
          </>
        )}
      </div>
    </aside>
  );
}
