import type {JSX} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import type {Row} from '../events';
import {Text} from '../shown';
import {texts} from '../texts';
import {type Asked, type Found, page} from './ask';

const pageSize = 400;
export const maxRows = 20000; // what the list holds: about 40 MB of events of 2 KB

/** useOlder holds the rows of the first page and of those after it. */
export function useOlder(topics: string[], asked: Asked, search: string, first: Found | undefined) {
  const [more, set] = useState<{of?: Found; rows: Row[]; cursor?: string}>({rows: []});
  const [error, setError] = useState<Error>();
  const under = useRef<Found | undefined>(undefined);
  useEffect(() => {
    set({of: first, rows: [], cursor: first?.cursor});
    setError(undefined);
    under.current = undefined;
  }, [first, search]);
  const rows = useMemo(() => [...(first?.events ?? []), ...(more.of === first ? more.rows : [])], [first, more]);
  const full = rows.length >= maxRows;
  const cursor = more.of === first ? more.cursor : undefined;
  const load = async () => {
    if (!first || !cursor || under.current || full) return;
    under.current = first;
    setError(undefined);
    try {
      const next = await page(topics, {...asked, limit: pageSize, cursor});
      if (under.current === first) set((was) => (was.of === first ? {of: first, rows: [...was.rows, ...next.events], cursor: next.cursor} : was));
    } catch (e) {
      setError(e as Error);
    } finally {
      if (under.current === first) under.current = undefined;
    }
  };
  const foot: JSX.Element | null = !first ? null
    : error ? <button class="button small" onClick={load}><Text text={error.message} line /> {texts.retry}</button>
    : full ? <span>{texts.list.full}</span>
    : cursor ? <button class="button small" onClick={load}>{texts.list.older}</button>
    : <span>{texts.list.end}</span>;
  return {rows, load, foot};
}
