// The most frequent values of fields. A click asks for one, or leaves it out.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {go} from '../address';
import type {Facets, Fields, Topic} from '../api';
import {get, topicPath} from '../client';
import {condition, holds} from '../events';
import {Problem} from '../notice';
import {plain, Text} from '../shown';
import {texts} from '../texts';
import {number} from '../time';

type Props = {
  topic: Topic;
  where: string;
  fields: string[];
  named: boolean;
  data: Facets | undefined;
  busy: boolean;
  error: Error | undefined;
  again: () => void;
  range: {from?: string; to?: string};
  add: (field: string, value: string, not: boolean) => void;
};

/** facetFields are those that the address names, else those that most topics have. */
export function facetFields(topics: Topic[], named: string | undefined): string[] {
  if (named) return named.split(',');
  return ['level', 'service', 'type', ...(topics.length === 1 ? (topics[0]!.fields ?? []) : []).filter((f) => /low/i.test(f.type)).map((f) => f.name).slice(0, 3), 'user_id'];
}

export function FacetList({topic, where, fields, named, data, busy, error, again, range, add}: Props): JSX.Element {
  // A field that no event has is not worth its place, but for one that was asked for.
  const shown = (data?.facets ?? []).filter((f) => fields.includes(f.field) && (named || f.values.some((v) => v.value !== '')));
  return (
    <aside class={'facets' + (busy ? ' busy' : '')} aria-label={texts.facets.name}>
      {error && <Problem error={error} again={again} />}
      {shown.map((f) => (
        <div key={f.field} class="facet-of"><details open>
          <summary><Text text={f.field.replace(/^attributes\./, '')} line /></summary>
          <ul>
            {f.values.filter((v) => v.value !== '').map((v) => {
              const only = holds(where, condition(topic, f.field, v.value));
              const not = holds(where, condition(topic, f.field, v.value, true));
              return (
                <li key={v.value} class={only ? 'on' : not ? 'off' : ''}>
                  <button class="facet" aria-pressed={only} aria-label={texts.facets.only(f.field, v.value) + ' ' + number(v.count)} onClick={(e) => add(f.field, v.value, e.altKey)}>
                    <span class="share" style={{width: `${data?.count ? (100 * v.count) / data.count : 0}%`}} />
                    <span class="value"><Text text={v.value} line /></span>{' '}
                    <span class="count">{number(v.count)}</span>
                  </button>
                  <button class="ghost small on-hover" aria-pressed={not} aria-label={texts.facets.without(f.field, v.value)} onClick={() => add(f.field, v.value, true)}>{'\u2260'}</button>
                </li>
              );
            })}
            {f.other > 0 && <li class="rest"><span>{texts.facets.other}</span><span class="count">{number(f.other)}</span></li>}
            {f.empty > 0 && <li class="rest"><span>{texts.facets.empty}</span><span class="count">{number(f.empty)}</span></li>}
          </ul>
        </details>
        <button class="ghost small on-hover" aria-label={texts.facets.remove(f.field)} onClick={() => go({query: {facets: fields.filter((n) => n !== f.field).join(',')}}, true)}>{'\u2715'}</button>
        </div>
      ))}
      <FieldPicker label={texts.facets.more} topic={topic} has={fields} range={range} pick={(name) => go({query: {facets: [...fields, name].join(',')}}, true)} />
    </aside>
  );
}

/** FieldPicker offers the fields that events have. */
export function FieldPicker({label, topic, has, range, pick}: {label: string; topic: Topic; has: string[]; range: {from?: string; to?: string}; pick: (name: string) => void}): JSX.Element {
  const [names, set] = useState<string[]>([]);
  const load = () => get<Fields>(topicPath(topic.name, 'fields'), {from: range.from, to: range.to, limit: 100}).then(
    (all) => set(all.fields.filter((f) => f.count > 0 && !['ts', 'id', 'message', 'month', 'shard', 'pos'].includes(f.name)).map((f) => f.name)),
    () => set([]),
  );
  return (
    <label class="more">
      <span class="unseen">{label}</span>
      <select value="" onFocus={load} onPointerDown={load} onChange={(e) => e.currentTarget.value && pick(e.currentTarget.value)}>
        <option value="">{label}{'\u2026'}</option>
        {names.filter((n) => !has.includes(n) && !n.includes(',')).map((n) => <option key={n} value={n}>{plain(n)}</option>)}
      </select>
    </label>
  );
}
