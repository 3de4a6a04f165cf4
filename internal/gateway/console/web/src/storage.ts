// What the page keeps in the browser. Where a browser refuses storage, it is kept until the page is left.
type Kind = 'localStorage' | 'sessionStorage';

const held = new Map<string, string>();

export function kept(key: string, kind: Kind = 'localStorage'): string {
  try {
    return window[kind].getItem(key) ?? '';
  } catch {
    return held.get(key) ?? '';
  }
}

/** keep keeps a text; an empty one is forgotten. */
export function keep(key: string, text: string, kind: Kind = 'localStorage'): void {
  try {
    if (text) window[kind].setItem(key, text);
    else window[kind].removeItem(key);
  } catch {
    held.set(key, text); // refused, or full
  }
}
