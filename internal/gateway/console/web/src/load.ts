// A request of a component: the last one counts, and an older one is cancelled.
import {useEffect, useState} from 'preact/hooks';
import {aborted} from './client';

export type Loaded<T> = {value?: T; error?: Error; busy: boolean; again: () => void};

/** useLoad asks whenever key changes, and again when told. What was loaded stays until the next answer. */
export function useLoad<T>(key: string, load: ((signal: AbortSignal) => Promise<T>) | undefined): Loaded<T> {
  const [state, set] = useState<{value?: T; error?: Error; busy: boolean}>({busy: !!load});
  const [round, setRound] = useState(0);
  const again = () => setRound((n) => n + 1);
  useEffect(() => {
    if (!load) {
      set({busy: false});
      return;
    }
    const stop = new AbortController();
    set((was) => ({...was, busy: true}));
    load(stop.signal).then(
      (value) => set({value, busy: false}),
      (error) => {
        if (!aborted(error) && !stop.signal.aborted) set((was) => ({value: was.value, error, busy: false}));
      },
    );
    return () => stop.abort();
  }, [key, round]);
  useBack(state.error ? again : undefined);
  return {...state, again};
}

/** useEvery calls f now and every so many milliseconds, as long as the page is seen. */
export function useEvery(ms: number, f: () => void): void {
  useEffect(() => {
    f();
    const timer = setInterval(() => {
      if (!document.hidden) f();
    }, ms);
    return () => clearInterval(timer);
  }, []);
}

// Those that hear when the server answers again after it did not.
const back = new Set<() => void>();

export function answersAgain(): void {
  for (const f of [...back]) f();
}

function useBack(f: (() => void) | undefined): void {
  useEffect(() => {
    if (!f) return;
    back.add(f);
    return () => void back.delete(f);
  }, [!f]);
}
