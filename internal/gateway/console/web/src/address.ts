// What the page shows is in the fragment of its address, which no server and no log gets: #/search?topic=app&from=-1h.
import {useLayoutEffect, useState} from 'preact/hooks';

export type Address = {page: string; query: Record<string, string>};

/** read is what the address bar says: it may be ahead of what is drawn, as the browser tells of a change of its own later. */
export function read(): Address {
  const [page, query] = location.hash.replace(/^#\/?/, '').split('?', 2);
  return {page: page ?? '', query: Object.fromEntries(new URLSearchParams(query ?? ''))};
}

export function write(a: Address): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(a.query)) {
    if (value !== '') query.set(name, value);
  }
  const text = query.toString();
  return '#/' + a.page + (text ? '?' + text : '');
}

const changed = new EventTarget();

/** go shows another state. A replaced one cannot be gone back to. */
export function go(to: Partial<Address>, replace = false): void {
  const now = read();
  const next = write({page: to.page ?? now.page, query: to.page !== undefined && to.page !== now.page ? (to.query ?? {}) : {...now.query, ...to.query}});
  if (next === location.hash) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', next);
  changed.dispatchEvent(new Event('change'));
}

export function useAddress(): Address {
  const [now, set] = useState(read);
  useLayoutEffect(() => { // with the first drawing: what the address changes to right after it is heard too
    const update = () => set(read());
    window.addEventListener('hashchange', update);
    window.addEventListener('popstate', update);
    changed.addEventListener('change', update);
    return () => {
      window.removeEventListener('hashchange', update);
      window.removeEventListener('popstate', update);
      changed.removeEventListener('change', update);
    };
  }, []);
  return now;
}
