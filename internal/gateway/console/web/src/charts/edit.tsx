// What a chart shows, as fields.
import type {JSX} from 'preact';
import type {Facets, Topic} from '../api';
import {get, topicPath} from '../client';
import {Choice, Field} from '../kinds/controls';
import {useLoad} from '../load';
import {splits} from '../search/histogram';
import {texts} from '../texts';
import type {Chart} from './spec';

const aligns = ['mean', 'rate', 'delta', 'sum', 'count', 'min', 'max', 'p50', 'p95', 'p99'] as const;
const reduces = ['', 'mean', 'sum', 'min', 'max', 'count', 'p50', 'p95', 'p99'] as const;
const same = (all: readonly string[]) => all.map((v) => [v, v || texts.charts.nothing] as const);

export function Edit({chart: c, topics, set}: {chart: Chart; topics: Topic[]; set: (c: Chart) => void}): JSX.Element {
  const put = (of: Partial<Chart>) => set({...c, ...of});
  const own = topics.filter((t) => c.source === 'search' || t.kind === 'metric');
  const topic = own.find((t) => t.name === c.topic);
  const metrics = useLoad(c.source + c.topic, c.source === 'metric' && topic ? (signal) => get<Facets>(topicPath(topic.name, 'facets'), {fields: 'type', n: 100}, signal).then((f) => f.facets[0]?.values.map((v) => v.value) ?? []) : undefined);
  return (
    <div class="edit">
      {c.source !== 'sql' && <Choice label={texts.charts.topic} value={c.topic} of={own.map((t) => [t.name, t.name] as const)} set={(v) => put({topic: v, by: ''})} />}
      {c.source === 'metric' && <Field label={texts.charts.metric} value={c.metric} list={metrics.value} set={(v) => put({metric: v})} />}
      {(c.source === 'search' || c.source === 'metric') && <Field label={texts.charts.where} wide value={c.where} placeholder={texts.filter.example} set={(v) => put({where: v})} />}
      {c.source === 'search' && topic && <Choice label={texts.charts.by} value={c.by} of={same(['', ...splits([topic])])} set={(v) => put({by: v})} />}
      {c.source === 'metric' && <Choice label={texts.charts.align} value={c.align || 'mean'} of={same(aligns)} set={(v) => put({align: v})} />}
      {c.source === 'metric' && <Choice label={texts.charts.reduce} value={c.reduce} of={same(reduces)} set={(v) => put({reduce: v})} />}
      {c.source === 'metric' && c.reduce && <Field label={texts.charts.by} value={c.by} placeholder="service" set={(v) => put({by: v})} />}
      {(c.source === 'promql' || c.source === 'sql') && (
        <label class="field whole-line"><span>{texts.charts.sources[c.source]}</span>
          <textarea rows={c.source === 'sql' ? 4 : 2} spellcheck={false} autocomplete="off" placeholder={c.source === 'sql' ? texts.charts.sqlExample : texts.charts.promqlExample} defaultValue={c.text}
            onChange={(e) => put({text: e.currentTarget.value.trim()})} onKeyDown={(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) put({text: e.currentTarget.value.trim()}); }} />
        </label>
      )}
      <Field label={texts.charts.title} value={c.title} set={(v) => put({title: v})} />
      {c.source === 'sql' && <p class="faint small-text">{texts.charts.sqlHint}</p>}
    </div>
  );
}
