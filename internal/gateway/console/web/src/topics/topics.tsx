// The topics: their fields, rules and retention, and how one is changed, here or by the command line.
import '../core';
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {write} from '../address';
import type {Topic} from '../api';
import {Copy} from '../notice';
import {texts} from '../texts';
import {number} from '../time';
import {Change} from './change';
import {rulesOf} from './rules';

export function Topics({topics, changed}: {topics: Topic[]; changed: () => void}): JSX.Element {
  return (
    <div class="page topics-page">
      <h1>{texts.topicsPage.name}</h1>
      <p class="lead">{texts.topicsPage.lead}</p>
      {topics.map((t) => <TopicCard key={t.name} topic={t} changed={changed} />)}
    </div>
  );
}

function TopicCard({topic: t, changed}: {topic: Topic; changed: () => void}): JSX.Element {
  const w = texts.topicsPage;
  const [changing, setChanging] = useState(false);
  const line = `almanac topics apply ${t.name} ${w.example}`;
  return (
    <section class="card" aria-label={t.name}>
      <div class="row">
        <h2>{t.name}</h2><span class="faint">{t.kind}</span>
        <span class="row end">
          <button class="button small" aria-label={w.changeOf(t.name)} aria-expanded={changing} onClick={() => setChanging(!changing)}>{w.change}</button>
          <a class="button small" href={write({page: 'search', query: {topic: t.name}})}>{texts.pages.search}</a>
          <a class="button small" href={write({page: 'proof', query: {}})}>{texts.pages.proof}</a>
        </span>
      </div>
      <dl class="facts">{rulesOf(t).filter(([name, value]) => value && name !== w.ownFields).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      {(t.fields ?? []).length > 0 && (
        <details open={(t.fields ?? []).length <= 12}>
          <summary>{w.fields(number((t.fields ?? []).length))}</summary>
          <div class="scrolled">
            <table>
              <thead><tr><th>{w.field}</th><th>{w.type}</th><th>{w.from}</th><th class="n">{w.since}</th></tr></thead>
              <tbody>{(t.fields ?? []).map((f) => <tr key={f.name}><td><code>{f.name}</code></td><td>{f.type}</td><td>{f.from && <code>{f.from}</code>}</td><td class="n">{f.since}</td></tr>)}</tbody>
            </table>
          </div>
        </details>
      )}
      {changing && <Change topic={t} changed={changed} />}
      <div class="snippet"><pre>{line}</pre><Copy text={() => line} label={texts.copy} /></div>
    </section>
  );
}
