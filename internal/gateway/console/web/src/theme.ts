// Dark and light, as the system is unless told.
const key = 'almanac-theme';
export type Theme = 'auto' | 'light' | 'dark';

export function theme(): Theme {
  const kept = localStorage.getItem(key);
  return kept === 'light' || kept === 'dark' ? kept : 'auto';
}

export function applyTheme(to: Theme = theme()): void {
  localStorage.setItem(key, to);
  if (to === 'auto') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = to;
}

export const nextTheme = (now: Theme): Theme => (now === 'auto' ? 'light' : now === 'light' ? 'dark' : 'auto');
