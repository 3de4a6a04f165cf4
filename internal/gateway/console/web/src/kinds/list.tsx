// A table of things of which one is open. The keys are those of the list of events.
import type {ComponentChildren, JSX} from 'preact';
import {useEffect, useRef, useState} from 'preact/hooks';
import {useKeys} from '../keys';

export type Column<T> = {name: string; right?: boolean; grow?: boolean; narrow?: boolean; title?: string; order?: {on: boolean; click: () => void}; cell: (row: T) => ComponentChildren};

type Props<T> = {label: string; columns: Column<T>[]; rows: T[]; keyOf: (row: T) => string; open?: string; choose: (row: T | undefined) => void; foot?: ComponentChildren};

export function Table<T>({label, columns, rows, keyOf, open, choose, foot}: Props<T>): JSX.Element {
  const [near, setNear] = useState(0);
  const at = rows.findIndex((r) => keyOf(r) === open);
  const box = useRef<HTMLDivElement>(null);
  const here = at >= 0 ? at : Math.min(near, Math.max(rows.length - 1, 0));
  useEffect(() => {
    box.current?.querySelector('tr.on')?.scrollIntoView({block: 'nearest'});
  }, [here]);
  useKeys((key) => {
    const step = {j: 1, ArrowDown: 1, k: -1, ArrowUp: -1}[key];
    if (step && rows.length) {
      const next = Math.min(Math.max(here + step, 0), rows.length - 1);
      setNear(next);
      if (at >= 0) choose(rows[next]);
      return true;
    }
    if (key === 'Enter' && rows[here] && document.activeElement?.tagName !== 'BUTTON') return choose(rows[here]), true;
    if (key === 'Escape' && at >= 0) return choose(undefined), true;
    return false;
  });
  const of = (c: Column<T>) => [c.right ? 'n' : '', c.grow ? 'grow' : '', c.narrow === false ? 'wide-only' : ''].filter(Boolean).join(' ');
  return (
    <div class="things" ref={box}>
      <table aria-label={label}>
        <thead><tr>{columns.map((c) => <th key={c.name} class={of(c)} title={c.title} aria-sort={c.order?.on ? 'descending' : undefined}>{c.order ? <button class={'ghost small' + (c.order.on ? ' on' : '')} onClick={c.order.click}>{c.name}</button> : c.name}</th>)}</tr></thead>
        <tbody>
          {rows.map((r, i) => (
            <tr key={keyOf(r)} class={(i === here ? 'on' : '') + (i === at ? ' open' : '')} aria-selected={i === at} onClick={() => choose(i === at ? undefined : r)}>
              {columns.map((c) => <td key={c.name} class={of(c)}>{c.cell(r)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
      {foot}
    </div>
  );
}
