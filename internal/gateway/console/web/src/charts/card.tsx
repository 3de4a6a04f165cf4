// A chart with its name, how it is drawn, and what it asks.
import type {JSX} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import type {Topic} from '../api';
import {useLoad} from '../load';
import {Empty, Problem} from '../notice';
import {Text} from '../shown';
import {texts} from '../texts';
import {zone} from '../time';
import {ask, type Range} from './data';
import {Edit} from './edit';
import {Plot} from './plot';
import {type Chart, shapes} from './spec';

type Props = {chart: Chart; range: Range; round: number; topics: Topic[]; editing: boolean; edit: (on: boolean) => void; height: number; set: (c: Chart) => void; remove: () => void; brush: (r: Range) => void; widen: (() => void) | undefined};

export function Card({chart: c, range, round, topics, editing, edit, height, set, remove, brush, widen}: Props): JSX.Element {
  const {shape, title, ...asked} = c;
  const lacks = {search: !c.topic, metric: !c.topic || !c.metric, promql: !c.text, sql: !c.text}[c.source];
  const data = useLoad(JSON.stringify([asked, range, round, zone()]), lacks ? undefined : (signal) => ask(c, range, signal));
  const name = title || described(c);
  const box = useRef<HTMLElement>(null);
  useEffect(() => {
    if (editing) box.current?.querySelector<HTMLElement>('.edit input, .edit textarea')?.focus();
  }, [editing]);
  return (
    <section class={'card' + (editing ? ' editing' : '')} ref={box} aria-label={name}>
      <header class="row">
        <h2><Text text={name} line /></h2>
        <span class="row end">
          {shapes.map((s) => <button key={s} class={'ghost small' + (s === shape ? ' on' : '')} aria-pressed={s === shape} onClick={() => set({...c, shape: s})}>{texts.charts.shapes[s]}</button>)}
          <button class={'ghost small' + (editing ? ' on' : '')} aria-expanded={editing} onClick={() => edit(!editing)}>{texts.charts.edit}</button>
          <button class="ghost small" aria-label={texts.charts.remove(name)} onClick={remove}>{'\u2715'}</button>
        </span>
      </header>
      {editing && <Edit chart={c} topics={topics} set={set} />}
      <div class={'card-body' + (data.busy && data.value ? ' busy' : '')} style={{minHeight: `${height}px`}}>
        {lacks ? <Empty title={texts.charts.lacks[c.source]} />
          : data.error ? <Problem error={data.error} again={data.again} />
          : !data.value ? <div class="loading" role="status">{texts.loading}</div>
          : !data.value.lines.length ? <Empty title={texts.charts.empty}>{widen && <button class="button" onClick={widen}>{texts.list.widen}</button>}</Empty>
          : <Plot data={data.value} shape={shape} by={c.source === 'search' ? c.by : ''} range={data.value.axis === 'time' ? range : undefined} label={name} height={height} together brush={brush} />}
      </div>
    </section>
  );
}

/** described is a chart in a few words. */
function described(c: Chart): string {
  const by = c.by ? ` ${texts.charts.by} ${c.by}` : '';
  if (c.source === 'search') return `${c.topic}${by}${c.where ? ': ' + c.where : ''}`;
  if (c.source === 'metric') return c.metric ? `${c.align || 'mean'} ${texts.charts.ofMetric} ${c.metric}${c.reduce ? `, ${c.reduce}${by}` : ''}${c.where ? ': ' + c.where : ''}` : texts.charts.sources.metric;
  return c.text.replace(/\s+/g, ' ').slice(0, 90) || texts.charts.sources[c.source];
}
