// A list of which only the rows that are seen are drawn. Wrapped lines are of any height: those are all there, and the
// browser draws what is seen.
import type {ComponentChildren, JSX} from 'preact';
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {attributesOf, keyOf, type Row, textOf, valueOf} from '../events';
import {Text} from '../shown';
import {texts} from '../texts';
import {shortTime} from '../time';
import {levelColour} from './colours';
import type {Column} from './columns';

const rowHeight = 23;
const spare = 12; // rows drawn above and below those that are seen
const nearEnd = 60; // rows before the end at which older ones are asked for
const maxLine = 600; // characters of a line that is not wrapped

type Props = {
  rows: Row[];
  columns: Column[];
  several?: boolean;
  wrap: boolean;
  stale: boolean;
  above: number;
  chosen: number;
  open: (e: Row) => void;
  near: () => void;
  foot: ComponentChildren;
  reset: string;
};

export function EventList({rows, columns, several, wrap, stale, above, chosen, open, near, foot, reset}: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(600);
  useLayoutEffect(() => {
    const sized = new ResizeObserver(([e]) => setSeen(e!.contentRect.height));
    sized.observe(box.current!);
    return () => sized.disconnect();
  }, []);
  useEffect(() => box.current?.scrollTo({top: 0}), [reset]);
  // Rows that come above leave those that are read where they are, but for a list that is at its top. Wrapped lines
  // are held by the browser.
  const was = useRef({above, reset});
  useLayoutEffect(() => {
    const came = was.current.reset === reset ? above - was.current.above : 0;
    was.current = {above, reset};
    const b = box.current!;
    if (came > 0 && !wrap && b.scrollTop > 0) {
      b.scrollTop += came * rowHeight;
      setTop(b.scrollTop);
    }
  }, [above, reset]);
  useEffect(() => {
    const at = chosen * rowHeight;
    const b = box.current;
    if (!b || wrap || chosen < 0) return;
    if (at < b.scrollTop) b.scrollTop = at;
    else if (at + 2 * rowHeight > b.scrollTop + b.clientHeight) b.scrollTop = at + 2 * rowHeight - b.clientHeight;
  }, [chosen - above]);
  const scroll = () => {
    const b = box.current!;
    setTop(b.scrollTop);
    if (b.scrollHeight - b.scrollTop - b.clientHeight < nearEnd * rowHeight) near();
  };
  const first = wrap ? 0 : Math.max(Math.floor(top / rowHeight) - spare, 0);
  const last = wrap ? rows.length : Math.min(Math.ceil((top + seen) / rowHeight) + spare, rows.length);
  return (
    <div class={'list' + (wrap ? ' wrapped' : '') + (stale ? ' busy' : '')} ref={box} onScroll={scroll} role="grid" aria-label={texts.list.name} aria-rowcount={rows.length} tabIndex={0}>
      <div style={{height: `${first * rowHeight}px`}} role="presentation" />
      {rows.slice(first, last).map((e, i) => (
        <EventRow key={keyOf(e)} event={e} columns={columns} several={several} wrap={wrap} on={first + i === chosen} index={first + i + 1} open={open} />
      ))}
      <div style={{height: `${(rows.length - last) * rowHeight}px`}} role="presentation" />
      {foot && <div class="list-foot" role="row"><span role="gridcell">{foot}</span></div>}
    </div>
  );
}

export function EventRow({event, columns, several, wrap, on, index, open}: {event: Row; columns: Column[]; several?: boolean; wrap?: boolean; on?: boolean; index: number; open?: (e: Row) => void}): JSX.Element {
  const level = textOf(event['level']);
  const cut = (text: string) => (wrap || text.length <= maxLine ? text : text.slice(0, maxLine) + '\u2026');
  return (
    <div class={'event' + (on ? ' on' : '')} role="row" aria-rowindex={index} aria-selected={!!on} style={{borderLeftColor: levelColour(level)}} onClick={() => open && !String(getSelection()) && open(event)}>
      <span class="time" role="gridcell">{shortTime(event.ts)}</span>
      <span class="level" role="gridcell" style={{color: levelColour(level)}}><Text text={level} line /></span>
      {several && <span class="cell topic-cell" role="gridcell">{textOf(event['_topic'])}</span>}
      {columns.map((c) => <span key={c.name} class="cell" role="gridcell" style={{width: `${c.width}px`}}><Text text={cut(valueOf(event, c.name))} line /></span>)}
      <span class="message" role="gridcell">
        <Text text={cut(textOf(event['message']))} line={!wrap} />
        {attributesOf(event).slice(0, wrap ? undefined : 12).map(([name, value]) => <span key={name} class="pair"><i><Text text={name} line /></i>=<Text text={cut(value)} line /></span>)}
      </span>
    </div>
  );
}
