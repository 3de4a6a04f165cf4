// Events that came after a page was read: how many, asked while the page is seen, and the events when they are wanted.
import {useEffect, useRef, useState} from 'preact/hooks';
import {Refused} from '../client';
import type {Row} from '../events';
import {type Asked, count, type Found, page} from './ask';

const every = 5000; // milliseconds between two askings
const seldom = 60_000; // and no more, however long an answer takes
const share = 10; // of the time, one in so many is spent asking
const most = 500; // events that one click brings

type Held = {of?: Found; rows: Row[]; back?: string; count: number; error?: Error};

/** useNewer knows what is newer than a first page. round grows with each time that some were brought. */
export function useNewer(topics: string[], asked: Asked, first: Found | undefined) {
  const [state, set] = useState<Held>({rows: [], count: 0});
  const [round, setRound] = useState(0);
  const held = of(first, state);
  const now = useRef(first);
  now.current = first;
  const busy = useRef<Found | undefined>(undefined);
  const {back} = held;

  useEffect(() => {
    if (!back) return;
    const stop = new AbortController();
    let timer = 0;
    let asking = false;
    const look = async () => {
      clearTimeout(timer);
      if (asking || document.hidden) return; // visibilitychange goes on
      const begin = performance.now();
      asking = true;
      try {
        const n = await count(topics, {...asked, cursor: back}, stop.signal);
        if (!stop.signal.aborted) set((was) => ({...of(first, was), count: n}));
      } catch (e) {
        if (e instanceof Refused && e.status < 500 && e.status !== 429) return; // the next search says why
      } finally {
        asking = false;
      }
      if (!stop.signal.aborted) timer = window.setTimeout(look, Math.min(Math.max(every, share * (performance.now() - begin)), seldom));
    };
    timer = window.setTimeout(look, every);
    document.addEventListener('visibilitychange', look);
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', look);
    };
  }, [first, back]);

  const load = async () => {
    if (!first || !back || busy.current === first) return;
    busy.current = first;
    try {
      const next = await page(topics, {...asked, limit: most, cursor: back});
      if (now.current !== first) return;
      set((was) => bring(of(first, was), next));
      if (next.events.length) setRound((n) => n + 1);
    } catch (error) {
      if (now.current === first) set((was) => ({...of(first, was), error: error as Error}));
    } finally {
      if (busy.current === first) busy.current = undefined;
    }
  };
  return {rows: held.rows, count: held.count, error: held.error, round, load};
}

/** of is what is held of a page: what is of another one is not. */
const of = (first: Found | undefined, was: Held): Held => (was.of === first ? was : {of: first, rows: [], back: first?.back, count: 0});

function bring(was: Held, next: Found): Held {
  return {of: was.of, rows: [...next.events, ...was.rows], back: next.back ?? was.back, count: Math.max(was.count - next.events.length, 0)};
}
