// The token that requests carry. It is typed, or comes in the address after #token=, and is kept until the tab is closed.
import {keep, kept} from './storage';

const key = 'almanac-token';

/**
 * takeFromAddress keeps a token of the address and takes it out of the address bar. It keeps none where a page of another site led
 * here, which the gateway marks (data-linked): what is done then would be done under a token that somebody else chose.
 */
export function takeFromAddress(): void {
  const parts = location.hash.replace(/^#/, '').split('&');
  const at = parts.findIndex((p) => p.startsWith('token='));
  if (at < 0) return;
  try {
    if (!('linked' in document.documentElement.dataset)) setToken(decodeURIComponent(parts[at]!.slice('token='.length)));
  } catch {
    // a link that somebody cut: the page asks for a token as without one
  }
  parts.splice(at, 1);
  const rest = parts.join('&');
  history.replaceState(null, '', location.pathname + location.search + (rest ? '#' + rest : ''));
}

export function token(): string {
  return kept(key, 'sessionStorage');
}

export function setToken(secret: string): void {
  keep(key, secret.trim(), 'sessionStorage');
}
