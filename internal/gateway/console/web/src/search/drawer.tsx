// One event: its fields, where it is, and what was around it.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {write} from '../address';
import type {Around, Topic} from '../api';
import {eventPath, get, topicPath} from '../client';
import {condition, fieldsOf, keyOf, type Row, textOf} from '../events';
import {parsedObject} from '../json';
import {useLoad} from '../load';
import {Copy, Problem} from '../notice';
import {plain, Text} from '../shown';
import {texts} from '../texts';
import {levelColour} from './colours';
import {type Column, showColumns, withColumn} from './columns';
import {EventRow} from './list';

type Props = {
  topic: Topic;
  event: Row;
  /** those of the list; a list whose columns cannot be chosen has none */
  columns?: Column[];
  add: (field: string, value: string, not: boolean) => void;
  close: () => void;
  open: (e: Row) => void;
};

export function Drawer({topic, event, columns, add, close, open}: Props): JSX.Element {
  const level = textOf(event['level']);
  const {place, again} = usePlace(topic.name, event);
  return (
    <aside class="drawer" aria-label={texts.event.name}>
      <header>
        <span class="badge" style={{background: levelColour(level)}}><Text text={level || texts.event.name} line /></span>
        <time>{event.ts}</time>
        <span class="end row">
          <Copy text={() => link(topic, event)} label={texts.event.link} />
          <Copy text={() => JSON.stringify(event, null, 2)} label={texts.event.copyJSON} />
          <button class="ghost" aria-label={texts.close} onClick={close}>{'\u2715'}</button>
        </span>
      </header>
      <div class="drawer-body">
        {event['message'] !== '' && <pre class="whole"><Text text={textOf(event['message'])} /></pre>}
        <h3>{texts.event.fields}</h3>
        <dl class="fields">
          {fieldsOf(event).filter(([name]) => name !== 'message' && name !== 'ts').map(([name, value]) => (
            <div key={name}>
              <dt title={plain(`${name}: ${topic.fields?.find((f) => f.name === name)?.type ?? texts.event.text}`)}><Text text={name.replace(/^attributes\./, '')} line /></dt>
              <dd>
                <Value text={value} />
                <span class="acts">
                  <button class="ghost small" title={texts.event.only} aria-label={`${texts.event.only}: ${name}`} onClick={() => add(name, value, false)}>=</button>
                  <button class="ghost small" title={texts.event.without} aria-label={`${texts.event.without}: ${name}`} onClick={() => add(name, value, true)}>{'\u2260'}</button>
                  {columns && !columns.some((c) => c.name === name) && !name.includes(',') && <button class="ghost small" title={texts.event.column} aria-label={`${texts.event.column}: ${name}`} onClick={() => showColumns(withColumn(columns, name))}>{'\u25a5'}</button>}
                  <Copy text={() => value} label={'\u29c9'} />
                </span>
              </dd>
            </div>
          ))}
        </dl>
        <h3>{texts.event.place}</h3>
        <dl class="fields place">
          <div><dt>{texts.event.id}</dt><dd><code><Text text={event.id} line /></code></dd></div>
          <div><dt>{texts.event.month}</dt><dd>{textOf(place['month'])}</dd></div>
          <div><dt>{texts.event.shard}</dt><dd><code>{textOf(place['shard'])}</code></dd></div>
          <div><dt>{texts.event.pos}</dt><dd>{isStored(place) ? <>{textOf(place['pos'])} <span class="good">{texts.event.stored}</span></> : again ? <><span class="warned">{texts.event.notYet}</span> <button class="button small" onClick={again}>{texts.event.lookAgain}</button></> : <span class="warned">{texts.event.onItsWay}</span>}</dd></div>
        </dl>
        <AroundList topic={topic} event={event} open={open} />
      </div>
    </aside>
  );
}

/** link is the address of an event: of a search with it, or that of the page, which has the search around it. */
const link = (topic: Topic, event: Row) => (event['_pos'] === undefined ? location.href : location.href.replace(/#.*/, '') + write({page: 'search', query: {topic: topic.name, from: 'all', event: keyOf(event)}}));

const lookAgain = 3000; // milliseconds
const mostLooks = 20; // a minute: what takes longer is told of by Health

/** isStored goes by the position of what was searched for: 0 is on its way. An event of a tail has its position before it is stored. */
const isStored = (e: Row) => e['_pos'] === undefined && Number(e['pos']) > 0;

/** usePlace is where an event is. One that was not stored when it was read is looked for until it is, and after so many looks only when asked to. */
function usePlace(topic: string, event: Row): {place: Row; again?: () => void} {
  const [found, set] = useState<Row>();
  const [round, setRound] = useState(0);
  const [over, setOver] = useState(false);
  const place = found ?? event;
  useEffect(() => {
    setOver(false);
    if (isStored(place)) return;
    const stop = new AbortController();
    let looks = 0;
    const look = () => {
      if (looks++ < mostLooks) return void get<Row>(eventPath(topic, event.ts, event.id), {}, stop.signal).then(set, () => undefined);
      clearInterval(timer);
      setOver(true);
    };
    const timer = setInterval(look, lookAgain);
    look();
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [isStored(place), round]);
  return {place, again: over ? () => setRound(round + 1) : undefined};
}

function Value({text}: {text: string}): JSX.Element {
  const object = text.length <= 65536 ? parsedObject(text) : undefined;
  if (!object) return <span class="text"><Text text={text} /></span>;
  return (
    <details class="folded">
      <summary><Text text={text.length > 80 ? text.slice(0, 80) + '\u2026' : text} line /></summary>
      <pre><Text text={JSON.stringify(object, null, 2)} /></pre>
    </details>
  );
}

function AroundList({topic, event, open}: {topic: Topic; event: Row; open: (e: Row) => void}): JSX.Element {
  const [same, setSame] = useState<string>();
  const offered = ['service', 'user_id', 'trace_id'].filter((name) => textOf(event[name]) !== '');
  const where = same ? condition(topic, same, textOf(event[same])) : '';
  const around = useLoad(keyOf(event) + same, same === undefined ? undefined : (signal) => get<Around>(topicPath(topic.name, `around/${encodeURIComponent(event.ts)}/${encodeURIComponent(event.id)}`), {n: 10, where}, signal));
  const rows = around.value ? ([...around.value.before, around.value.event, ...around.value.after] as Row[]) : [];
  return (
    <section class="around" aria-label={texts.event.around}>
      <h3 title={texts.event.aroundHint}>
        {texts.event.around}
        <span class="row end">
          <button class={'ghost small' + (same === '' ? ' on' : '')} onClick={() => setSame('')}>{texts.event.aroundAll}</button>
          {offered.map((name) => <button key={name} class={'ghost small' + (same === name ? ' on' : '')} onClick={() => setSame(name)}>{name}</button>)}
        </span>
      </h3>
      {around.error && <Problem error={around.error} again={around.again} />}
      <div role="grid" aria-label={texts.event.around}>
        {rows.map((e, i) => <EventRow key={keyOf(e)} event={e} columns={[]} on={keyOf(e) === keyOf(event)} index={i + 1} open={open} />)}
      </div>
    </section>
  );
}
