// How a chart is drawn by uPlot.
import uPlot from 'uplot';
import {short} from '../kinds/amount';
import {axisTime, inUTC} from '../time';
import type {Data, Range} from './data';
import type {Shape} from './spec';

export type Drawn = {data: Data; shape: Shape; range?: Range; together?: boolean; width: number; height: number; themed: (name: string) => string; colours: string[]; at: (i: number | null) => void; brush: (r: Range) => void};

export const isStacked = (data: Data, shape: Shape) => data.additive && shape !== 'line' && data.lines.length > 1;

export function options({data, shape, range, together, width, height, themed, colours, at, brush}: Drawn): uPlot.Options {
  const stacked = isStacked(data, shape);
  const time = data.axis === 'time';
  const axis = {stroke: themed('--faint'), font: '11px ' + themed('--sans'), ticks: {show: false}};
  const span = !time ? 0 : range ? range.end - range.start : ((data.x.at(-1) ?? 0) - (data.x[0] ?? 0)) * 1000;
  const ends = (min: number, max: number): [number, number] => {
    if (data.axis === 'text') return [-0.6, data.x.length - 0.4];
    if (range) return [range.start / 1000, range.end / 1000];
    if (shape === 'bar') return time ? [min, max + data.step] : [min - data.step / 2, max + data.step / 2];
    return min === max ? [min - 1, max + 1] : [min, max];
  };
  const tick = (s: number) => (time ? axisTime(s * 1e3, span) : data.labels ? cut(data.labels[s] ?? '') : short(s));
  return {
    width, height, padding: [8, 16, 0, 0],
    legend: {show: false},
    cursor: {y: false, points: {size: 6}, drag: {x: time, y: false, setScale: false}, ...(together && time ? {sync: {key: 'charts', scales: ['x', null]}} : {})},
    tzDate: (s) => (inUTC() ? uPlot.tzDate(new Date(s * 1e3), 'Etc/UTC') : new Date(s * 1e3)),
    scales: {x: {time, range: (_, min, max) => ends(min, max)}, y: {range: (_, min, max) => around(min, max)}},
    axes: [
      {...axis, grid: {show: false}, size: 26, values: (_, splits) => splits.map(tick), ...(data.labels ? {splits: () => everyFew(data.x, Math.max(Math.floor(width / 90), 1))} : {})},
      {...axis, grid: {stroke: themed('--line'), width: 1}, size: 52, values: (_, splits) => splits.map(short)},
    ],
    // Of a stack the highest is drawn first, so that those below it cover it.
    series: [{}, ...places(data, stacked).map((i) => ({
      stroke: colours[i]!, width: shape === 'bar' ? 0 : 1.5, points: {show: shape !== 'bar' && data.x.length < 3, size: 5},
      ...(shape === 'bar' ? {fill: colours[i]! + (stacked || data.lines.length === 1 ? '' : 'a0'), paths: uPlot.paths.bars!({size: [0.86, 60], align: time ? 1 : 0})} : {}),
      ...(shape === 'area' ? {fill: colours[i]! + (stacked ? 'b0' : '30')} : {}),
    }))],
    // An area of a stack ends where the one below it begins.
    bands: shape === 'area' && stacked ? data.lines.slice(1).map((_, k) => ({series: [k + 1, k + 2]})) : [],
    hooks: {
      setCursor: [(u) => at(u.cursor.idx ?? null)],
      setSelect: [(u) => {
        const {left, width: wide} = u.select;
        if (wide < 4) return;
        u.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
        brush({start: u.posToVal(left, 'x') * 1000, end: u.posToVal(left + wide, 'x') * 1000});
      }],
    },
  };
}

/** columns are the numbers as they are drawn; those of a stack are on top of each other. */
export function columns(data: Data, stacked: boolean): uPlot.AlignedData {
  if (!stacked) return [data.x, ...data.lines.map((l) => l.values)];
  const sums = data.x.map(() => 0);
  return [data.x, ...data.lines.map((l) => l.values.map((v, i) => (sums[i]! += v ?? 0))).reverse()];
}

const places = (data: Data, stacked: boolean) => {
  const all = data.lines.map((_, i) => i);
  return stacked ? all.reverse() : all;
};

const everyFew = (x: number[], most: number) => x.filter((_, i) => i % Math.ceil(x.length / most) === 0);

const cut = (text: string) => (text.length > 14 ? text.slice(0, 13) + '\u2026' : text);

/** around is a scale that has zero, and room above. */
function around(min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  const low = Math.min(min, 0);
  const high = Math.max(max, 0);
  const room = (high - low || 1) * 0.06;
  return [low < 0 ? low - room : 0, high > 0 || low === 0 ? high + room : 0];
}
