// Events over time: stacked bars, over which a range is dragged.
import type {JSX} from 'preact';
import {useLayoutEffect, useRef, useState} from 'preact/hooks';
import {go} from '../address';
import type {Histogram, Topic} from '../api';
import {Problem} from '../notice';
import {Text} from '../shown';
import {texts} from '../texts';
import {axisTime, behind, longTime, number} from '../time';
import {byTopic} from './ask';
import {colourOf, orderOf} from './colours';

type Props = {
  data: Histogram | undefined;
  busy: boolean;
  error: Error | undefined;
  again: () => void;
  by: string;
  step: string;
  topics: Topic[];
  start: number | undefined;
  end: number | undefined;
  brush: (from: number, to: number) => void;
  isolate: (value: string) => void;
  toCharts: () => void;
};

const height = 92;

export function HistogramView({data, busy, error, again, by, step: chosen, topics, start, end, brush, isolate, toCharts}: Props): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(800);
  const [drag, setDrag] = useState<[number, number]>();
  const [over, setOver] = useState<number>();
  useLayoutEffect(() => {
    if (!box.current) return;
    const seen = new ResizeObserver(([e]) => setWidth(Math.max(e!.contentRect.width, 50)));
    seen.observe(box.current);
    return () => seen.disconnect();
  }, []);

  const buckets = (data?.buckets ?? []).map((b) => ({at: Date.parse(b.ts), count: b.count, by: b.by ?? (b.count ? {'': b.count} : {})}));
  const step = stepOf(data?.step ?? '', buckets.map((b) => b.at));
  const first = Math.min(start ?? Infinity, buckets[0]?.at ?? Infinity);
  const last = Math.max(end ?? -Infinity, (buckets.at(-1)?.at ?? -Infinity) + step);
  const span = Math.max(last - first, 1);
  const x = (at: number) => ((at - first) / span) * width;
  const time = (px: number) => first + (Math.min(Math.max(px, 0), width) / width) * span;
  const top = Math.max(...buckets.map((b) => b.count), 1);
  const keys = orderOf(by, [...new Set(buckets.flatMap((b) => Object.keys(b.by)))]);
  const total = (key: string) => buckets.reduce((sum, b) => sum + (b.by[key] ?? 0), 0);
  const known = Number.isFinite(first) && Number.isFinite(last);

  const px = (e: PointerEvent) => e.clientX - box.current!.getBoundingClientRect().left;
  const down = (e: PointerEvent) => {
    if (e.button !== 0 || !known) return;
    (e.currentTarget as Element).setPointerCapture(e.pointerId);
    setDrag([px(e), px(e)]);
  };
  const move = (e: PointerEvent) => {
    if (drag) setDrag([drag[0], px(e)]);
    const at = known ? time(px(e)) : 0;
    const i = buckets.findIndex((b) => at >= b.at && at < b.at + step);
    setOver(i < 0 ? undefined : i);
  };
  const up = () => {
    if (!drag) return;
    setDrag(undefined);
    const [a, b] = [Math.min(...drag), Math.max(...drag)];
    if (b - a >= 4) return brush(Math.floor(time(a)), Math.ceil(time(b)));
    const bar = over === undefined ? undefined : buckets[over];
    if (bar) brush(bar.at, bar.at + step);
  };
  const pointed = over === undefined ? undefined : buckets[over];
  return (
    <section class={'histogram' + (busy ? ' busy' : '')} aria-label={texts.histogram.name(data ? number(data.count) : '')}>
      {error && <Problem error={error} again={again} />}
      <div class="legend">
        {keys.map((key) => (
          <button key={key} class="ghost" disabled={!key} onClick={() => isolate(key)}>
            <i style={{background: colourOf(by, key, keys)}} /><Text text={key || texts.facets.empty} line /> <b>{number(total(key))}</b>
          </button>
        ))}
        <span class="legend-end">
          {data && (
            <select class="faint" aria-label={texts.histogram.step} title={texts.histogram.step} value={chosen} onChange={(e) => go({query: {step: e.currentTarget.value}})}>
              <option value="">{chosen ? texts.histogram.fitting : texts.histogram.each(data.step)}</option>
              {stepsOf(start, end).filter((s) => chosen || s !== data.step).map((s) => <option key={s} value={s}>{texts.histogram.each(s)}</option>)}
            </select>
          )}
          {known && <button class="ghost" onClick={() => brush(Math.floor(first - span / 2), Math.ceil(last + span / 2))}>{texts.histogram.out}</button>}
          {known && <button class="ghost" onClick={toCharts}>{texts.histogram.toCharts}</button>}
          <label class="faint">{texts.histogram.by}{' '}
            <select value={by} onChange={(e) => go({query: {by: e.currentTarget.value}})}>
              {splits(topics).map((name) => <option key={name}>{name}</option>)}
            </select>
          </label>
        </span>
      </div>
      <div class="chart" ref={box} onPointerDown={down} onPointerMove={move} onPointerUp={up} onPointerCancel={() => setDrag(undefined)} onPointerLeave={() => setOver(undefined)} title={texts.histogram.drag}>
        <svg width={width} height={height} aria-hidden="true">
          <line x1="0" x2={width} y1={height - 0.5} y2={height - 0.5} class="axis" />
          {known && buckets.map((b, i) => {
            const left = x(b.at);
            const w = Math.max(x(b.at + step) - left - 1, 1);
            let y = height - 1;
            return (
              <g key={b.at} class={i === over ? 'over' : undefined}>
                {keys.map((key) => {
                  const n = b.by[key] ?? 0;
                  if (!n) return null;
                  const h = Math.max((n / top) * (height - 8), 0.75);
                  y -= h;
                  return <rect key={key} x={left} y={y} width={w} height={h} fill={colourOf(by, key, keys)} />;
                })}
              </g>
            );
          })}
          {drag && <rect class="brush" x={Math.min(...drag)} y="0" width={Math.abs(drag[1] - drag[0])} height={height} />}
        </svg>
        {known && (
          <div class="ticks" aria-hidden="true">
            {ticks(first, last, Math.max(Math.floor(width / 130), 2)).filter((at) => x(at) > 20 && x(at) < width - 20).map((at) => <span key={at} style={{left: `${x(at)}px`}}>{axisTime(at, span < 9e5 ? 0 : span)}</span>)}
          </div>
        )}
        <span class="top-count" aria-hidden="true">{buckets.length ? number(top) : ''}</span>
        {pointed && !drag && (
          <div class="tip" style={{left: `${Math.min(Math.max(x(pointed.at), 0), Math.max(width - 190, 0))}px`}}>
            <b>{longTime(pointed.at)}</b>
            {[...keys].reverse().map((key) => (pointed.by[key] ? <div key={key}><i style={{background: colourOf(by, key, keys)}} /><Text text={key || texts.facets.empty} line /><b>{number(pointed.by[key])}</b></div> : null))}
          </div>
        )}
      </div>
    </section>
  );
}

const lengths: Record<string, number> = {ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: 86400e3, w: 604800e3, mo: 30 * 86400e3, y: 365 * 86400e3};

/** stepOf is how long a bucket is; of months, as long as the one that was met. */
export function stepOf(text: string, at: number[]): number {
  let sum = 0;
  for (const [, n, unit] of text.matchAll(/(\d+)(ms|mo|[smhdwy])/g)) sum += Number(n) * (lengths[unit!] ?? 0);
  const near = at.slice(1).map((t, i) => t - at[i]!);
  return text.includes('mo') && near.length ? Math.min(...near, sum) : sum || 1;
}

/** stepsOf are lengths of bars by which a range has 2 to 1,000 of them, which the server counts at most. */
export const stepsOf = (start = 0, end = 0) => ['1s', '10s', '1m', '5m', '15m', '1h', '6h', '12h', '1d', '7d', '1mo'].filter((s) => {
  const n = (end - start) / stepOf(s, []);
  return n > 2 && n < 990;
});

const rounds = [1e3, 5e3, 10e3, 30e3, 60e3, 300e3, 600e3, 900e3, 1800e3, 3600e3, 7200e3, 10800e3, 21600e3, 43200e3, 86400e3, 2 * 86400e3, 7 * 86400e3, 30 * 86400e3, 91 * 86400e3, 365 * 86400e3];

function ticks(first: number, last: number, most: number): number[] {
  const step = rounds.find((r) => (last - first) / r <= most) ?? (last - first) / most;
  const out: number[] = [];
  const shift = behind(first);
  for (let at = Math.ceil((first - shift) / step) * step + shift; at < last; at += step) out.push(at);
  return out;
}

/** splits are the fields by which a histogram may be split. */
export function splits(topics: Topic[]): string[] {
  return [...(topics.length > 1 ? [byTopic] : []), 'level', 'service', 'type', ...(topics.length > 1 ? [] : (topics[0]!.fields ?? [])).filter((f) => /low/i.test(f.type)).map((f) => f.name)];
}
