import {useLayoutEffect, useRef} from 'preact/hooks';

/** typing reports whether a key belongs to a field that is typed into. */
export function typing(e: Event): boolean {
  const on = e.composedPath()[0]; // what is below a shadow root too
  return on instanceof HTMLInputElement || on instanceof HTMLTextAreaElement || on instanceof HTMLSelectElement || (on instanceof HTMLElement && on.isContentEditable);
}

/** useKeys hears keys that no field takes. f reports whether it took one. before: it hears them before others do. */
export function useKeys(f: (key: string, e: KeyboardEvent) => boolean, before = false): void {
  const last = useRef(f);
  last.current = f;
  useLayoutEffect(() => {
    const hear = (e: KeyboardEvent) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || typing(e)) return;
      if (last.current(e.key, e)) e.preventDefault();
    };
    window.addEventListener('keydown', hear, before);
    return () => window.removeEventListener('keydown', hear, before);
  }, []);
}
