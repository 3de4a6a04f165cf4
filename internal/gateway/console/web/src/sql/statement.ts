// A statement and its answer, of which the page holds the first rows.
import {ask, Broken} from '../client';
import {parse} from '../json';

const maxRows = 1000; // that the page holds; a download has all
const maxChars = 8 << 20; // of the rows that the page holds
const maxDownload = 256 << 20; // bytes that are gathered before they are saved

export type Answer = {names: string[]; types: string[]; rows: unknown[][]; cut: boolean; readRows: number; readBytes: number; seconds: number};

/** newID names a request, so that its statement can be cancelled. crypto.randomUUID is not there without TLS. */
export const newID = () => 'page-' + [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, '0')).join('');

const send = (sql: string, id: string, format: string, signal?: AbortSignal) => ask('v1/sql', {format}, {method: 'POST', body: sql, signal, headers: {'X-Request-Id': id, 'Content-Type': 'text/plain; charset=utf-8'}});

export async function run(sql: string, id: string, signal?: AbortSignal): Promise<Answer> {
  const begin = performance.now();
  const answer = await send(sql, id, 'JSONCompactEachRowWithNamesAndTypes', signal);
  const lines: unknown[][] = [];
  let rest = '';
  let size = 0;
  const cut = await chunks(answer, (bytes, decoder, last) => {
    const parts = (rest + decoder.decode(bytes, {stream: !last})).split('\n');
    rest = parts.pop() ?? '';
    size += bytes.length;
    for (const line of parts) if (line && lines.length < maxRows + 2) lines.push(parse(line) as unknown[]);
    return lines.length < maxRows + 2 && size < maxChars;
  });
  const [names = [], types = [], ...rows] = lines;
  const read = (name: string) => Number(answer.headers.get(name) ?? 0);
  return {names: names as string[], types: types as string[], rows, cut, readRows: read('Almanac-Read-Rows'), readBytes: read('Almanac-Read-Bytes'), seconds: (performance.now() - begin) / 1000};
}

/** csv is all of an answer, up to a bound. */
export async function csv(sql: string, id: string): Promise<{file: Blob; cut: boolean}> {
  const answer = await send(sql, id, 'CSVWithNames');
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  const cut = await chunks(answer, (bytes) => {
    parts.push(bytes);
    return (size += bytes.length) < maxDownload;
  });
  return {file: new Blob(parts), cut};
}

/** chunks hands on a body until f has enough, and reports whether there was more. */
async function chunks(answer: Response, f: (bytes: Uint8Array<ArrayBuffer>, decoder: TextDecoder, last: boolean) => boolean): Promise<boolean> {
  const body = answer.body!.getReader() as ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  const decoder = new TextDecoder();
  for (;;) {
    const {done, value} = await body.read().catch(() => { throw new Broken(); });
    if (done) return f(new Uint8Array(), decoder, true), false;
    if (!f(value, decoder, false)) return void body.cancel(), true;
  }
}
