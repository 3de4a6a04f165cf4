// One chart, on a canvas, with the values under the pointer below it, or as a table of its numbers.
import '../core';
import type {JSX} from 'preact';
import {useEffect, useMemo, useRef, useState} from 'preact/hooks';
import uPlot from 'uplot';
import {short} from '../kinds/amount';
import {levelColour, orderOf} from '../search/colours';
import {Text} from '../shown';
import {texts} from '../texts';
import {inUTC, longTime} from '../time';
import type {Data, Range} from './data';
import {columns, isStacked, options} from './options';
import type {Shape} from './spec';
import {useThemed} from './themed';

type Props = {data: Data; shape: Shape; by?: string; range?: Range; label: string; height: number; together?: boolean; brush?: (range: Range) => void};

const maxRows = 500; // of the table of numbers

export function Plot({data: given, shape, by, range, label, height, together, brush}: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState<number | null>(null);
  const [numbers, setNumbers] = useState(false);
  const themed = useThemed();
  // Levels have an order and colours of their own, as in Search.
  const data = useMemo((): Data => (by === 'level' ? {...given, lines: orderOf(by, given.lines.map((l) => l.name)).map((name) => given.lines.find((l) => l.name === name)!)} : given), [given, by]);
  const colours = useMemo(() => data.lines.map((l, i) => themed(by === 'level' ? /--\w+/.exec(levelColour(l.name))![0] : `--part-${i % 8}`)), [data, by, themed]);
  const chosen = useRef(brush);
  chosen.current = brush;
  const utc = inUTC();

  useEffect(() => {
    const own = box.current;
    if (!own) return;
    const width = Math.max(own.clientWidth, 60);
    const drawn = new uPlot(options({data, shape, range, together, width, height, themed, colours, at: setAt, brush: (r) => chosen.current?.(r)}), columns(data, isStacked(data, shape)), own);
    const seen = new ResizeObserver(([e]) => drawn.setSize({width: Math.max(e!.contentRect.width, 60), height}));
    seen.observe(own);
    return () => {
      seen.disconnect();
      drawn.destroy();
    };
  }, [data, shape, colours, height, numbers, range?.start, range?.end, utc]);

  const nameAt = (i: number) => (data.axis === 'time' ? longTime(data.x[i]! * 1000) : data.labels ? data.labels[i]! : String(data.x[i]));
  const shown = at !== null && at < data.x.length ? at : null;
  const value = (v: number | null | undefined) => (v === null || v === undefined ? '\u2013' : short(v));
  return (
    <figure class="plot" aria-label={label}>
      {numbers ? (
        <div class="plot-numbers" style={{height: `${height}px`}}>
          <table aria-label={texts.charts.numbersOf(label)}>
            <thead><tr><th>{texts.charts.axes[data.axis]}</th>{data.lines.map((l) => <th key={l.name} class="n"><Text text={l.name} line /></th>)}</tr></thead>
            <tbody>{data.x.slice(0, maxRows).map((x, i) => <tr key={x}><td class="nums"><Text text={nameAt(i)} line /></td>{data.lines.map((l) => <td key={l.name} class="n">{l.values[i] ?? ''}</td>)}</tr>)}</tbody>
          </table>
        </div>
      ) : <div class="plot-canvas" ref={box} style={{height: `${height}px`}} />}
      <figcaption>
        {!numbers && <span class="plot-at faint nums">{shown !== null ? <Text text={nameAt(shown)} line /> : ''}</span>}
        <ul>{!numbers && data.lines.map((l, i) => <li key={l.name}><i style={{background: colours[i]}} /><Text text={l.name} line />{shown !== null && <b>{value(l.values[shown])}</b>}</li>)}</ul>
        <button class="ghost small" aria-pressed={numbers} onClick={() => setNumbers(!numbers)}>{texts.charts.numbers}</button>
      </figcaption>
      {(data.left > 0 || data.note) && <p class="note"><Text text={[data.left > 0 ? texts.charts.left(data.left) : '', data.note].filter(Boolean).join(' ')} line /></p>}
    </figure>
  );
}
