// Lists that come page by page, each with the cursor of the next.
import {useEffect, useRef, useState} from 'preact/hooks';
import {useLoad} from './load';

export type PageOf<T> = {rows: T[]; cursor?: string};

export type Paged<T> = {rows: T[]; error?: Error; busy: boolean; loaded: boolean; more?: () => void; again: () => void};

/** usePaged asks for the first page whenever key changes, and for the next when told. maxRows bounds what is held. */
export function usePaged<T>(key: string, maxRows: number, load: ((cursor: string | undefined, signal: AbortSignal) => Promise<PageOf<T>>) | undefined): Paged<T> {
  const first = useLoad(key, load && ((signal) => load(undefined, signal)));
  const [rest, setRest] = useState<{of?: PageOf<T>; rows: T[]; cursor?: string; error?: Error; busy?: boolean}>({rows: []});
  const under = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => under.current?.abort(), [first.value]);
  const own = rest.of === first.value ? rest : undefined;
  const rows = [...(first.value?.rows ?? []), ...(own?.rows ?? [])];
  const cursor = own ? own.cursor : first.value?.cursor;
  const more = async () => {
    const of = first.value;
    if (!of || !load || own?.busy) return;
    const stop = (under.current = new AbortController());
    const had = own?.rows ?? [];
    setRest({of, rows: had, cursor, busy: true});
    await load(cursor, stop.signal).then(
      (page) => setRest({of, rows: [...had, ...page.rows], cursor: page.cursor}),
      (error: Error) => { if (!stop.signal.aborted) setRest({of, rows: had, cursor, error}); },
    );
  };
  return {rows, error: first.error ?? own?.error, busy: first.busy || !!own?.busy, loaded: !!first.value, again: first.again, more: cursor && rows.length < maxRows ? more : undefined};
}
