// Where in a statement the server's message says that it is wrong.

export type Place = {from: number; to: number};

/** placeOf is what a message is about: what stands at the position that it tells, or the name that it does not know. */
export function placeOf(message: string, statement: string): Place | undefined {
  const at = /failed at position (\d+)(?: \(([^)]*)\))?/.exec(message);
  if (at) {
    const from = characters(statement, Number(at[1]) - 1);
    // At the end of a statement nothing stands: its last character is marked.
    if (from >= statement.trimEnd().length) return last(statement);
    const token = at[2] && statement.startsWith(at[2], from) ? at[2].length : 1;
    return {from, to: from + token};
  }
  const named = /(?:identifier|[Ff]unction with name|[Tt]able|[Dd]atabase) [`'"]([^`'"]+)[`'"]/.exec(message)?.[1];
  if (!named) return undefined;
  const found = new RegExp(`(?<![\\w.])${named.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?!\\w)`).exec(statement);
  return found ? {from: found.index, to: found.index + named.length} : undefined;
}

function last(statement: string): Place | undefined {
  const end = statement.trimEnd().length;
  return end ? {from: end - 1, to: end} : undefined;
}

/** characters is where a number of bytes of UTF-8 ends: the server counts bytes. */
function characters(text: string, bytes: number): number {
  let n = 0;
  let i = 0;
  for (const c of text) {
    if (n >= bytes) break;
    const code = c.codePointAt(0)!;
    n += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    i += c.length;
  }
  return i;
}
