// The heads of columns, by which they are made wider or narrower, or taken away.
import type {JSX} from 'preact';
import {useRef} from 'preact/hooks';
import {go} from '../address';
import {Text} from '../shown';
import {texts} from '../texts';

export type Column = {name: string; width: number};

const usual = 104;
const least = 40;
const most = 900;
const step = 16; // pixels that a key makes a column wider

export const usualColumns: Column[] = [{name: 'service', width: usual}];

/** columnsOf are those of the address, with their widths. */
export function columnsOf(query: Record<string, string>): Column[] {
  const widths = (query['widths'] ?? '').split(',').map(Number);
  return (query['cols'] ?? 'service').split(',').filter(Boolean).map((name, i) => ({name, width: within(widths[i]! || usual)}));
}

const within = (width: number) => Math.min(Math.max(Math.round(width), least), most);

/** showColumns writes columns into the address. */
export function showColumns(columns: Column[]): void {
  go({query: {cols: columns.map((c) => c.name).join(',') || ',', widths: columns.every((c) => c.width === usual) ? '' : columns.map((c) => c.width).join(',')}}, true);
}

export const withColumn = (columns: Column[], name: string) => [...columns, {name, width: usual}];

type Props = {columns: Column[]; several: boolean; /** while one is dragged, which is not in the address yet */ drag: (columns: Column[] | undefined) => void};

export function ColumnHeads({columns, several, drag}: Props): JSX.Element {
  const from = useRef<{x: number; width: number}>(undefined);
  const resized = (i: number, width: number) => columns.map((c, at) => (at === i ? {...c, width: within(width)} : c));
  const up = () => {
    if (from.current) showColumns(columns);
    from.current = undefined;
    drag(undefined);
  };
  const down = (e: PointerEvent, c: Column) => {
    (e.currentTarget as Element).setPointerCapture(e.pointerId);
    from.current = {x: e.clientX, width: c.width};
  };
  return (
    <div class="event heads">
      <span class="time">{texts.list.time}</span>
      <span class="level">{texts.list.level}</span>
      {several && <span class="cell">{texts.health.topic}</span>}
      {columns.map((c, i) => (
        <span key={c.name} class="cell" style={{width: `${c.width}px`}}>
          <span class="cut"><Text text={c.name.replace(/^attributes\./, '')} line /></span>
          <button class="ghost small on-hover" aria-label={texts.facets.remove(c.name)} onClick={() => showColumns(columns.filter((_, at) => at !== i))}>{'\u2715'}</button>
          <span class="grip" role="separator" tabIndex={0} aria-orientation="vertical" aria-label={texts.list.width(c.name)} aria-valuenow={c.width} aria-valuemin={least} aria-valuemax={most}
            onPointerDown={(e) => down(e, c)} onPointerMove={(e) => { if (from.current) drag(resized(i, from.current.width + e.clientX - from.current.x)); }} onPointerUp={up} onPointerCancel={up}
            onKeyDown={(e) => { const by = {ArrowLeft: -step, ArrowRight: step}[e.key]; if (by) { e.preventDefault(); e.stopPropagation(); showColumns(resized(i, c.width + by)); } }} />
        </span>
      ))}
      <span class="message">{texts.list.message}</span>
    </div>
  );
}
