import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {Topic} from '../api';
import {ask, topicPath} from '../client';
import {save} from '../save';
import {plain, Text} from '../shown';
import {texts} from '../texts';
import {number} from '../time';
import {type Column, showColumns, withColumn} from './columns';
import {FieldPicker} from './facets';

type Props = {
  topics: Topic[];
  asked: {from?: string; to?: string; where?: string};
  shown: number;
  count: number | undefined;
  busy: boolean;
  columns: Column[];
  wrap: boolean;
  setWrap: (on: boolean) => void;
  newer: {count: number; error?: Error; load: () => void} | undefined;
  notes: string[];
};

export function ListHead({topics, asked, shown, count, busy, columns, wrap, setWrap, newer, notes}: Props): JSX.Element {
  const said = notes.filter((n) => !/may scan about \d{1,6} rows/.test(n)).join(' '); // what is quick is not worth a word
  return (
    <div class="list-head">
      <span class="found" role="status">{busy && !shown ? texts.loading : countText(shown, count)}</span>
      {newer && newer.count > 0 && (
        <button class="newer-bar" title={newer.error ? '' : texts.list.newerHint} onClick={newer.load}>{newer.error ? <><Text text={newer.error.message} line /> {texts.retry}</> : texts.list.newer(newer.count, number(newer.count))}</button>
      )}
      {said && <span class="note" title={plain(said)}><Text text={said} line /></span>}
      <span class="row end">
        <FieldPicker label={texts.list.addColumn} topic={topics[0]!} has={columns.map((c) => c.name)} range={asked} pick={(name) => showColumns(withColumn(columns, name))} />
        <button class={'ghost' + (wrap ? ' on' : '')} aria-pressed={wrap} onClick={() => setWrap(!wrap)}>{texts.list.wrap}</button>
        <Export topics={topics} asked={asked} as="ndjson" />
        <Export topics={topics} asked={asked} as="csv" />
      </span>
    </div>
  );
}

/** Events may come between the two answers: no more are shown than there are. */
const countText = (shown: number, all: number | undefined) => (all === undefined ? texts.list.shown(number(shown)) : texts.list.found(number(shown), number(Math.max(all, shown))));

const maxExport = 256 << 20; // bytes that are gathered before they are saved

const medias = {ndjson: 'application/x-ndjson', csv: 'text/csv'};

/** Export saves all that matches, page by page, a file for each topic. */
function Export({topics, asked, as}: {topics: Topic[]; asked: Props['asked']; as: 'ndjson' | 'csv'}): JSX.Element {
  const [progress, set] = useState('');
  const [stop, setStop] = useState<AbortController>();
  const run = async () => {
    if (stop) return stop.abort();
    const own = new AbortController();
    setStop(own);
    let size = 0;
    try {
      for (const topic of topics) {
        const parts: Blob[] = [];
        for (let cursor = ''; ;) {
          const answer = await ask(topicPath(topic.name, 'events'), {...asked, limit: 1000, cursor}, {headers: {Accept: medias[as]}, signal: own.signal});
          // Each page of CSV begins with the names, which have no line of their own in them.
          const part = as === 'csv' && parts.length ? new Blob([(await answer.text()).replace(/^.*\n/, '')]) : await answer.blob();
          parts.push(part);
          size += part.size;
          cursor = answer.headers.get('Almanac-Cursor') ?? '';
          set(`${(size / 1e6).toFixed(1)} MB`);
          if (!cursor || size > maxExport) break;
        }
        save(new Blob(parts), `${topic.name}.${as}`);
      }
      set(size > maxExport ? texts.list.full : '');
    } catch (e) {
      set(own.signal.aborted ? '' : (e as Error).message);
    } finally {
      setStop(undefined);
    }
  };
  const [name, hint] = as === 'csv' ? [texts.list.exportCSV, texts.list.exportCSVHint] : [texts.list.export, texts.list.exportHint];
  return <button class="ghost" title={hint} onClick={run}>{stop ? `${progress} \u2715` : progress || name}</button>;
}
