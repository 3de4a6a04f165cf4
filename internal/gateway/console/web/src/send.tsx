// How to send events, with what arrives below.
import './core';
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {write} from './address';
import type {Status, Topic} from './api';
import {address, get} from './client';
import {pageOf} from './kinds';
import {useLoad} from './load';
import {Copy, Problem} from './notice';
import {usualColumns} from './search/columns';
import {EventRow} from './search/list';
import {TopicPicker} from './search/topics';
import {asksToken, snippets} from './snippets';
import {useTail} from './tail';
import {texts} from './texts';
import {token} from './token';

export function Send({topics, topic}: {topics: Topic[]; topic: Topic}): JSX.Element {
  const status = useLoad('listens', (signal) => get<Status>('v1/status', {}, signal));
  const all = snippets(topic, address('').replace(/\/$/, ''), !!token(), status.value?.listens);
  const [chosen, setTab] = useState('curl');
  const tab = all[chosen] ? chosen : 'curl';
  const text = status.busy && ownPort.includes(tab) ? texts.loading : all[tab]!;
  return (
    <div class="page send">
      <header class="row">
        <h1>{texts.send.name}</h1>
        <TopicPicker topics={topics} topic={topic} />
      </header>
      <p class="lead">{texts.send.hint}{token() || asksToken(topic.kind) ? ' ' + texts.send.token : ''}</p>
      <section class="card">
        <div class="tabs" role="tablist">
          {Object.keys(all).map((name) => <button key={name} role="tab" class="ghost" aria-selected={name === tab} onClick={() => setTab(name)}>{texts.send.tabs[name]}</button>)}
        </div>
        <div class="snippet" role="tabpanel">
          <pre>{text}</pre>
          <Copy text={() => text} label={texts.copy} />
        </div>
      </section>
      <Arriving key={topic.name} topic={topic} />
    </div>
  );
}

const ownPort = ['otlp', 'syslog']; // tabs whose inputs have ports of their own

/** Arriving is what came of a topic since the page is shown. */
function Arriving({topic}: {topic: Topic}): JSX.Element {
  const tail = useTail(topic.name, '');
  const last = tail.rows.slice(-12).reverse();
  const page = pageOf(topic.kind);
  const see = <p><a class="button" href={write({page: page ?? 'search', query: {topic: topic.name, ...(!page && {from: 'all'})}})}>{page ? texts.kinds.pages[page] : texts.send.see}</a></p>;
  return (
    <section class="card" aria-label={texts.send.arriving}>
      <h2>{texts.send.arriving} <span class={'light ' + (tail.state.is === 'open' ? 'good' : 'faint')}><i /></span></h2>
      {tail.state.is === 'refused' ? <Problem error={tail.state.error} again={tail.again} />
        : !last.length && <p class="faint">{tail.state.is === 'open' ? texts.tail.waiting : texts.tail.connecting}</p>}
      <div role="grid" aria-label={texts.send.arriving}>{last.map(({row, n}) => <EventRow key={n} event={row} columns={usualColumns} index={n} />)}</div>
      {(last.length > 0 || page) && see}
    </section>
  );
}
