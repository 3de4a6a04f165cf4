// Dark and light, as the system is unless told.
import {keep, kept} from './storage';

const key = 'almanac-theme';
export type Theme = 'auto' | 'light' | 'dark';

export function theme(): Theme {
  const chosen = kept(key);
  return chosen === 'light' || chosen === 'dark' ? chosen : 'auto';
}

export function applyTheme(to: Theme = theme()): void {
  keep(key, to);
  if (to === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = to;
}

export const nextTheme = (now: Theme): Theme => (now === 'auto' ? 'light' : now === 'light' ? 'dark' : 'auto');
