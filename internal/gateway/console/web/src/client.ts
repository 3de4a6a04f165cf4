// Requests to the API, relative to the page, so that they work below a path prefix.
import type {Error as Answered} from './api';
import {parse} from './json';
import {texts} from './texts';
import {token} from './token';

/** Refused is an answer that is not one of success. */
export class Refused extends Error {
  constructor(readonly status: number, readonly code: string, message: string, readonly hint: string, readonly id: string) {
    super(message);
  }
  /** The column of a filter that the message is about, from 1; 0 for none. */
  get column(): number {
    return Number(/\bat column (\d+)/.exec(this.message)?.[1] ?? 0);
  }
}

/** Unreachable says that no answer came. */
export class Unreachable extends Error {
  constructor() {
    super(texts.unreachable);
  }
}

/** Broken says that an answer began and did not end. */
export class Broken extends Error {
  constructor() {
    super(texts.broken);
  }
}

export type Query = Record<string, string | number | string[] | undefined>;

export function address(path: string, query: Query = {}): string {
  const url = new URL('../' + path, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) value.forEach((one) => url.searchParams.append(name, one));
    else if (value !== undefined && value !== '') url.searchParams.set(name, String(value));
  }
  return url.href;
}

export const topicPath = (topic: string, rest: string) => `v1/topics/${encodeURIComponent(topic)}/${rest}`;

export const eventPath = (topic: string, ts: string, id: string) => topicPath(topic, `events/${encodeURIComponent(ts)}/${encodeURIComponent(id)}`);

export async function ask(path: string, query: Query, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token()) headers.set('Authorization', 'Bearer ' + token());
  let answer: Response;
  try {
    answer = await fetch(address(path, query), {...init, headers, credentials: 'omit', cache: 'no-store'});
  } catch (e) {
    if (init.signal?.aborted) throw e;
    throw new Unreachable();
  }
  if (answer.ok) return answer;
  throw refusal(answer.status, await answer.text());
}

function refusal(status: number, text: string): Refused {
  try {
    const {error} = JSON.parse(text) as {error: Answered['error'] | string};
    if (typeof error === 'string') return new Refused(status, 'promql', error, '', ''); // as Prometheus says it
    if (error) return new Refused(status, error.code, error.message, error.hint ?? '', error.request_id ?? '');
  } catch {
    // something between answered, such as a proxy
  }
  return new Refused(status, 'http', texts.status(status), text.slice(0, 200), '');
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return parse(await (await ask(path, query, {signal})).text()) as T;
}

export async function post<T>(path: string, query: Query = {}, body?: unknown, method = 'POST'): Promise<T> {
  const init: RequestInit = {method};
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = {'Content-Type': 'application/json'};
  }
  return parse(await (await ask(path, query, init)).text()) as T;
}

export const aborted = (e: unknown) => e instanceof DOMException && e.name === 'AbortError';
