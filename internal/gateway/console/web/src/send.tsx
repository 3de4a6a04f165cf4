// How to send events, with what arrives below.
import './core';
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {write} from './address';
import type {Topic} from './api';
import {address} from './client';
import {Copy} from './notice';
import {usualColumns} from './search/columns';
import {EventRow} from './search/list';
import {TopicPicker} from './search/topics';
import {useTail} from './tail';
import {texts} from './texts';
import {token} from './token';

export function Send({topics, topic}: {topics: Topic[]; topic: Topic}): JSX.Element {
  const all = snippets(topic.name);
  const [tab, setTab] = useState('curl');
  const text = all[tab]!;
  const tail = useTail(topic.name, '');
  const last = tail.rows.slice(-12).reverse();
  return (
    <div class="page send">
      <header class="row">
        <h1>{texts.send.name}</h1>
        <TopicPicker topics={topics} topic={topic} />
      </header>
      <p class="lead">{texts.send.hint}{token() ? ' ' + texts.send.token : ''}</p>
      <section class="card">
        <div class="tabs" role="tablist">
          {Object.keys(all).map((name) => <button key={name} role="tab" class="ghost" aria-selected={name === tab} onClick={() => setTab(name)}>{texts.send.tabs[name]}</button>)}
        </div>
        <div class="snippet" role="tabpanel">
          <pre>{text}</pre>
          <Copy text={() => text} label={texts.copy} />
        </div>
      </section>
      <section class="card" aria-label={texts.send.arriving}>
        <h2>{texts.send.arriving} <span class={'light ' + (tail.state.is === 'open' ? 'good' : 'faint')}><i /></span></h2>
        {!last.length && <p class="faint">{texts.tail.waiting}</p>}
        <div role="grid" aria-label={texts.send.arriving}>{last.map(({row, n}) => <EventRow key={n} event={row} columns={usualColumns} index={n} />)}</div>
        {last.length > 0 && <p><a class="button" href={write({page: 'search', query: {topic: topic.name, from: 'all'}})}>{texts.send.see}</a></p>}
      </section>
    </div>
  );
}

function snippets(topic: string): Record<string, string> {
  const base = address('').replace(/\/$/, '');
  const auth = token() ? " \\\n  -H 'Authorization: Bearer TOKEN'" : '';
  const events = `${base}/v1/topics/${topic}/events`;
  return {
    curl: `curl '${events}'${auth} \\\n  -H 'Content-Type: application/x-ndjson' --data-binary '{"level":"info","service":"shop","user_id":"u-7","message":"order placed","attributes":{"order":"4711"}}'`,
    cli: `echo '{"level":"info","service":"shop","message":"order placed"}' | almanac send ${topic} --to ${base} --format ndjson`,
    file: `curl '${events}?format=text&service=shop'${auth} \\\n  -H 'Content-Type: text/plain' --data-binary @server.log`,
    loki: `curl '${base}/t/${topic}/loki/api/v1/push'${auth} \\\n  -H 'Content-Type: application/json' \\\n  -d '{"streams":[{"stream":{"service":"shop","level":"info"},"values":[["'$(date +%s%N)'","order placed"]]}]}'`,
    elastic: `curl '${base}/elastic/${topic}/_bulk'${auth} \\\n  -H 'Content-Type: application/x-ndjson' --data-binary $'{"create":{}}\\n{"@timestamp":"'$(date -u +%FT%TZ)'","message":"order placed"}\\n'`,
  };
}
