// The topics: their fields, rules and retention. They are changed by the command line, whose line is here to copy.
import '../core';
import type {JSX} from 'preact';
import {write} from '../address';
import type {Topic} from '../api';
import {Copy} from '../notice';
import {texts} from '../texts';
import {bytes, number, seconds} from '../time';

export function Topics({topics}: {topics: Topic[]}): JSX.Element {
  return (
    <div class="page topics-page">
      <h1>{texts.topicsPage.name}</h1>
      <p class="lead">{texts.topicsPage.lead}</p>
      {topics.map((t) => <TopicCard key={t.name} topic={t} />)}
    </div>
  );
}

function TopicCard({topic: t}: {topic: Topic}): JSX.Element {
  const w = texts.topicsPage;
  const rules: [string, string][] = [
    [w.kept, t.keep_days > 0 ? w.days(t.keep_days) : w.forever],
    [w.anonymised, t.anonymise ? `${w.after(t.anonymise.after_days)}: ${(t.anonymise.fields ?? []).join(', ') || w.usual}` : ''],
    [w.cold, t.cold_after_days ? w.after(t.cold_after_days) : ''],
    [w.privacy, (t.pii ?? []).map((p) => `${p.field}: ${p.rule}${p.grid ? ` ${p.grid}` : ''}`).join(', ')],
    [w.lanes, `${t.lanes}, ${w.by} ${t.lane_by.join(', ') || w.producer}`],
    [w.rotate, [t.rotate.rows > 0 && `${number(t.rotate.rows)} ${texts.proof.rows}`, t.rotate.bytes > 0 && bytes(t.rotate.bytes), t.rotate.span > 0 && seconds(t.rotate.span / 1e9)].filter(Boolean).join(w.or)],
    [w.once, (t.once_by ?? []).join(', ')],
    [w.fresh, t.sql_fresh ? seconds(t.sql_fresh / 1e9) : ''],
    [w.version, String(t.version)],
  ];
  const line = `almanac topics apply ${t.name} ${w.example}`;
  return (
    <section class="card" aria-label={t.name}>
      <div class="row">
        <h2>{t.name}</h2><span class="faint">{t.kind}</span>
        <span class="row end">
          <a class="button small" href={write({page: 'search', query: {topic: t.name}})}>{texts.pages.search}</a>
          <a class="button small" href={write({page: 'proof', query: {}})}>{texts.pages.proof}</a>
        </span>
      </div>
      <dl class="facts">{rules.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
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
      <div class="snippet"><pre>{line}</pre><Copy text={() => line} label={texts.copy} /></div>
    </section>
  );
}
