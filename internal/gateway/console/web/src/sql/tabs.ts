// The statements that a browser tab has open, kept until it is closed.
import {keep, kept} from '../storage';

export type Tab = {id: number; text: string};
export type Tabs = {all: Tab[]; at: number; next: number};

export const maxTabs = 8;
const maxText = 65536; // characters of a statement that are kept
const key = 'almanac-sql';

/** opened are the tabs that were kept, at the one with the statement of the address. */
export function opened(asked: string): Tabs {
  let tabs: Tabs = {all: [{id: 1, text: ''}], at: 1, next: 2};
  try {
    const had = JSON.parse(kept(key, 'sessionStorage')) as {texts: unknown; at: unknown};
    const texts = Array.isArray(had.texts) ? had.texts.filter((t): t is string => typeof t === 'string').slice(0, maxTabs) : [];
    if (texts.length) {
      const all = texts.map((text, i) => ({id: i + 1, text}));
      tabs = {all, at: all[Number(had.at)]?.id ?? 1, next: all.length + 1};
    }
  } catch {
    // nothing was kept
  }
  return asked ? withText(tabs, asked) : tabs;
}

/** withText is at the tab that has a text: one that is there, the present one if it is empty, or another. */
export function withText(tabs: Tabs, text: string): Tabs {
  const there = tabs.all.find((t) => t.text === text);
  if (there) return {...tabs, at: there.id};
  const now = tabs.all.find((t) => t.id === tabs.at);
  // It is another tab in the place of the present one, as an editor begins with its text.
  if (now?.text.trim() === '' || tabs.all.length >= maxTabs) return {all: tabs.all.map((t) => (t.id === tabs.at ? {id: tabs.next, text} : t)), at: tabs.next, next: tabs.next + 1};
  return changed(added(tabs), text);
}

export const added = (tabs: Tabs): Tabs => (tabs.all.length >= maxTabs ? tabs : {all: [...tabs.all, {id: tabs.next, text: ''}], at: tabs.next, next: tabs.next + 1});

export const changed = (tabs: Tabs, text: string): Tabs => ({...tabs, all: tabs.all.map((t) => (t.id === tabs.at ? {...t, text} : t))});

export function closed(tabs: Tabs, id: number): Tabs {
  const i = tabs.all.findIndex((t) => t.id === id);
  const all = tabs.all.filter((t) => t.id !== id);
  if (!all.length) return {all: [{id: tabs.next, text: ''}], at: tabs.next, next: tabs.next + 1};
  return {...tabs, all, at: tabs.at === id ? all[Math.min(i, all.length - 1)]!.id : tabs.at};
}

export function keepTabs(tabs: Tabs): void {
  keep(key, JSON.stringify({texts: tabs.all.map((t) => t.text.slice(0, maxText)), at: tabs.all.findIndex((t) => t.id === tabs.at)}), 'sessionStorage');
}
