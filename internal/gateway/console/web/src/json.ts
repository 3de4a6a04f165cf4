// JSON whose whole numbers keep their digits: those that a number cannot hold become texts.

type Source = {source?: string};

export function parse(text: string): unknown {
  const keep = (_: string, value: unknown, from?: Source) =>
    typeof value === 'number' && !Number.isSafeInteger(value) && from?.source && /^-?\d+$/.test(from.source) ? from.source : value;
  return JSON.parse(text, keep as (this: unknown, key: string, value: unknown) => unknown);
}

/** parsedObject is the object or list that a text is in JSON; undefined for any other text. */
export function parsedObject(text: string): object | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value = parse(text);
    return typeof value === 'object' && value ? value : undefined;
  } catch {
    return undefined;
  }
}
