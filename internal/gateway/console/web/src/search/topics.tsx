import type {JSX} from 'preact';
import {go} from '../address';
import type {Topic} from '../api';
import {texts} from '../texts';

export function TopicPicker({topics, topic}: {topics: Topic[]; topic: Topic}): JSX.Element {
  return (
    <label class="picker">
      <span class="unseen">{texts.topic}</span>
      <select value={topic.name} onChange={(e) => go({query: {topic: e.currentTarget.value, event: '', facets: '', cols: ''}})}>
        {topics.map((t) => <option key={t.name} value={t.name}>{t.kind === 'log' ? t.name : `${t.name} (${t.kind})`}</option>)}
      </select>
    </label>
  );
}
