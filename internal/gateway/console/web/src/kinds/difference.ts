// The difference between two JSON values, line by line, as two columns that stand beside each other.

export type Line = {left?: string; right?: string; same: boolean};

const maxCells = 4_000_000; // of the table that finds the longest common lines; two bodies of 2,000 lines

/** written is a value as lines, the keys of objects in order, so that their order is no difference. */
export function written(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  return JSON.stringify(ordered(value), null, 2).split('\n');
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || !value) return value;
  const out: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const name of Object.keys(value).sort()) out[name] = ordered((value as Record<string, unknown>)[name]);
  return out;
}

/** difference pairs the lines of two texts. A comma at the end of a line is no difference. */
export function difference(left: string[], right: string[]): Line[] {
  const a = left.map(bare);
  const b = right.map(bare);
  let begin = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++;
  let end = 0;
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const out: Line[] = [];
  const equal = (i: number, j: number) => out.push({left: left[i]!, right: right[j]!, same: true});
  for (let i = 0; i < begin; i++) equal(i, i);
  let gone: string[] = [];
  let came: string[] = [];
  const flush = () => {
    for (let i = 0; i < Math.max(gone.length, came.length); i++) out.push({left: gone[i], right: came[i], same: false});
    gone = [];
    came = [];
  };
  let i = begin;
  let j = begin;
  for (const [x, y] of common(a.slice(begin, a.length - end), b.slice(begin, b.length - end))) {
    gone.push(...left.slice(i, begin + x));
    came.push(...right.slice(j, begin + y));
    flush();
    equal(begin + x, begin + y);
    i = begin + x + 1;
    j = begin + y + 1;
  }
  gone.push(...left.slice(i, left.length - end));
  came.push(...right.slice(j, right.length - end));
  flush();
  for (let k = end; k > 0; k--) equal(left.length - k, right.length - k);
  return out;
}

const bare = (line: string) => line.replace(/,$/, '');

/** common are the places of the longest common lines, in order; none where the texts are too long to look. */
function common(a: string[], b: string[]): [number, number][] {
  const width = b.length + 1;
  if (a.length * b.length > maxCells) return [];
  const longest = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1]! + 1 : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
    }
  }
  const out: [number, number][] = [];
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) out.push([i++, j++]);
    else if (longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!) i++;
    else j++;
  }
  return out;
}

const near = 3; // equal lines that are shown around what differs

/** folded are the lines with long runs of equal ones taken out: a number stands for so many. */
export function folded(lines: Line[]): (Line | number)[] {
  const out: (Line | number)[] = [];
  const shown = lines.map(() => false);
  lines.forEach((line, i) => {
    if (!line.same) for (let k = Math.max(0, i - near); k <= Math.min(lines.length - 1, i + near); k++) shown[k] = true;
  });
  for (let i = 0; i < lines.length; ) {
    let n = 0;
    while (i + n < lines.length && !shown[i + n]) n++;
    if (n > 2) out.push(n);
    else out.push(...lines.slice(i, i + n));
    i += n;
    if (i < lines.length && shown[i]) out.push(lines[i++]!);
  }
  return out;
}
