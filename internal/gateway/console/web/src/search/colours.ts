// The colours of a chart's parts. Those of levels have a meaning; others are told apart.

const levels: [RegExp, number, string][] = [
  [/^(trace|debug|finest|finer|fine|verbose)/i, 0, 'var(--debug)'],
  [/^(info|notice|ok|default)/i, 1, 'var(--info)'],
  [/^warn/i, 2, 'var(--warn)'],
  [/^(err|severe)/i, 3, 'var(--error)'],
  [/^(fatal|crit|alert|emerg|panic)/i, 4, 'var(--fatal)'],
];

export function levelColour(level: string): string {
  return levels.find(([is]) => is.test(level))?.[2] ?? 'var(--other)';
}

/** orderOf is from the bottom of a bar up. */
export function orderOf(by: string, keys: string[]): string[] {
  const weight = (key: string) => levels.find(([is]) => is.test(key))?.[1] ?? -1;
  return by === 'level' ? keys.sort((a, b) => weight(a) - weight(b) || (a < b ? -1 : 1)) : keys.sort();
}

export function colourOf(by: string, key: string, keys: string[]): string {
  if (by === 'level') return levelColour(key);
  return `var(--part-${keys.indexOf(key) % 8})`;
}
