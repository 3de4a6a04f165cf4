// The topics: their fields, rules and retention, and how one is changed, here or by the command line.
import '../core';
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {write} from '../address';
import type {Topic, TopicPlan} from '../api';
import {post} from '../client';
import {Copy, Problem} from '../notice';
import {Text} from '../shown';
import {texts} from '../texts';
import {number} from '../time';
import {Change} from './change';
import {rulesOf} from './rules';

const w = texts.topicsPage;
const kinds = ['log', 'metric', 'meter', 'audit', 'document', 'timer'];

export function Topics({topics, changed}: {topics: Topic[]; changed: () => void}): JSX.Element {
  return (
    <div class="page topics-page">
      <h1>{w.name}</h1>
      <p class="lead">{w.lead}</p>
      <NewTopic changed={changed} />
      {topics.map((t) => <TopicCard key={t.name} topic={t} changed={changed} />)}
    </div>
  );
}

/** NewTopic declares a topic with the options of its kind. They are changed once it is there. */
function NewTopic({changed}: {changed: () => void}): JSX.Element {
  const [state, set] = useState<{error?: Error; made?: TopicPlan; busy?: boolean}>({});
  const create = (e: Event) => {
    e.preventDefault();
    const form = e.currentTarget as HTMLFormElement;
    const [name, kind] = [...new FormData(form).values()] as [string, string];
    const put = (query: Record<string, string>) => post<TopicPlan>('v1/topics/' + encodeURIComponent(name), query, {kind}, 'PUT');
    set({busy: true});
    // A topic that exists would get the options of a new one.
    put({dry_run: 'true'}).then((plan) => {
      if (plan.did !== 'would be created') {
        changed();
        throw new Error(w.there(name));
      }
      return put({});
    }).then((made) => {
      if (new FormData(form).get('name') === name) form.reset(); // the next one may be typed already
      set({made});
      changed();
    }).catch((error) => set({error}));
  };
  return (
    <section class="card" aria-label={w.new}>
      <h2>{w.new}</h2>
      <form class="row" aria-label={w.new} onSubmit={create} onInput={() => state.busy || set({})}>
        <label class="field">{w.named}<input name="name" required spellcheck={false} autocomplete="off" /></label>
        <label class="field">{w.kind}<select name="kind">{kinds.map((kind) => <option key={kind}>{kind}</option>)}</select></label>
        <button class="button primary" disabled={state.busy}>{w.create}</button>
      </form>
      {state.error && <Problem error={state.error} kept={() => set({})} />}
      {state.made && <p class="row" role="status"><b><Text text={`${state.made.topic} ${state.made.did}`} line /></b><a href={write({page: 'send', query: {topic: state.made.topic}})}>{texts.list.howToSend}</a></p>}
    </section>
  );
}

function TopicCard({topic: t, changed}: {topic: Topic; changed: () => void}): JSX.Element {
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
