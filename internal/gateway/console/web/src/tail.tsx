// Events as they come. New ones are added below; while older ones are read, nothing moves.
import './core';
import type {JSX} from 'preact';
import {useEffect, useLayoutEffect, useRef, useState} from 'preact/hooks';
import {go} from './address';
import type {Topic} from './api';
import {Refused} from './client';
import {keyOf, type Row, toggled} from './events';
import {useKeys} from './keys';
import {Empty, Problem} from './notice';
import {Drawer} from './search/drawer';
import {FilterBar} from './search/filterbar';
import {usualColumns} from './search/columns';
import {EventRow} from './search/list';
import {TopicPicker} from './search/topics';
import {Follower, type State} from './stream';
import {texts} from './texts';
import {number, seconds} from './time';

const rowHeight = 23;
const maxRows = 5000; // what is kept of a tail that is followed
const maxHeld = 5000; // what comes while it is not followed; then reading stops, and goes on from its position

type Held = {shown: {row: Row; n: number}[]; held: {row: Row; n: number}[]};

export function Tail({topics, topic, where}: {topics: Topic[]; topic: Topic; where: string}): JSX.Element {
  const tail = useTail(topic.name, where);
  const [chosen, choose] = useState<Row>();
  const bar = useRef<HTMLInputElement>(null);
  useKeys((key) => {
    if (key === 'p') return tail.follow(!tail.following), true;
    if (key === '/') return bar.current?.focus(), true;
    if (key === 'Escape' && chosen) return choose(undefined), true;
    return false;
  });
  const refused = tail.state.is === 'refused' ? tail.state.error : undefined;
  const wrong = refused instanceof Refused && refused.column > 0 ? refused : undefined;
  const add = (field: string, value: string, not: boolean) => go({query: {where: toggled(where, topic, field, value, not)}});
  return (
    <div class={'search tail' + (chosen ? ' with-drawer' : '')}>
      <div class="controls">
        <TopicPicker topics={topics} topic={topic} />
        <FilterBar input={bar} topic={topic} where={where} range={{from: '-1d'}} wrong={wrong} run={(text) => go({query: {where: text}})} />
        <button class="button primary" onClick={() => tail.follow(!tail.following)}>{tail.following ? texts.tail.pause : texts.tail.resume}</button>
        <button class="button" onClick={tail.clear}>{texts.tail.clear}</button>
      </div>
      <div class="list-head">
        <Light state={tail.state} following={tail.following} />
        <span class="faint">{texts.tail.rate(number(tail.rate))}</span>
        <span class="faint">{texts.list.shown(number(tail.rows.length))}</span>
      </div>
      <div class="columns">
        <section class="results" aria-label={texts.tail.name}>
          {refused && !wrong ? <Problem error={refused} again={tail.again} />
            : !tail.rows.length ? <Empty title={tail.state.is === 'open' ? texts.tail.waiting : texts.tail.connecting} />
            : <Rows tail={tail} chosen={chosen} open={choose} />}
          {!tail.following && tail.held > 0 && (
            <button class="newer" onClick={() => tail.follow(true)}>{texts.tail.newer(number(tail.held))}{tail.full ? ` \u2014 ${texts.tail.full}` : ''}</button>
          )}
        </section>
        {chosen && <Drawer key={keyOf(chosen)} topic={topic} event={chosen} add={add} close={() => choose(undefined)} open={choose} />}
      </div>
    </div>
  );
}

function Light({state, following}: {state: State; following: boolean}): JSX.Element {
  const text = state.is === 'lost' ? texts.tail.again(seconds(state.again / 1000)) : state.is === 'open' ? (following ? texts.tail.live : texts.tail.paused) : state.is === 'stopped' ? texts.tail.paused : texts.tail.connecting;
  return <span class={'light ' + (state.is === 'open' && following ? 'good' : state.is === 'lost' ? 'warned' : 'faint')} role="status"><i />{text}</span>;
}

function Rows({tail, chosen, open}: {tail: Tailed; chosen: Row | undefined; open: (e: Row) => void}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const self = useRef(false);
  const {rows, following} = tail;
  useLayoutEffect(() => {
    const b = box.current!;
    if (!following) return;
    self.current = true;
    b.scrollTop = b.scrollHeight;
    setTop(b.scrollTop);
  }, [rows, following]);
  const scroll = () => {
    const b = box.current!;
    setTop(b.scrollTop);
    if (self.current) {
      self.current = false;
      return;
    }
    const end = b.scrollHeight - b.scrollTop - b.clientHeight < rowHeight;
    if (!end && following) tail.follow(false);
    if (end && !following && !tail.held) tail.follow(true);
  };
  const first = Math.max(Math.floor(top / rowHeight) - 12, 0);
  const last = Math.min(first + 120, rows.length);
  return (
    <div class="list" ref={box} onScroll={scroll} onWheel={(e) => { self.current = false; if (e.deltaY < 0 && following) tail.follow(false); }} role="grid" aria-label={texts.tail.name} aria-rowcount={rows.at(-1)?.n ?? 0} tabIndex={0}>
      <div style={{height: `${first * rowHeight}px`}} role="presentation" />
      {rows.slice(first, last).map(({row, n}) => <EventRow key={n} event={row} columns={usualColumns} on={row === chosen} index={n} open={(e) => { tail.follow(false); open(e); }} />)}
      <div style={{height: `${(rows.length - last) * rowHeight}px`}} role="presentation" />
    </div>
  );
}

type Tailed = ReturnType<typeof useTail>;

/** useTail follows a topic. What comes is drawn once a frame at most; what comes while it is not followed is held. */
export function useTail(topic: string, where: string) {
  const [state, setState] = useState<State>({is: 'connecting'});
  const [all, setAll] = useState<Held>({shown: [], held: []});
  const [following, setFollowing] = useState(true);
  const [rate, setRate] = useState(0);
  const follower = useRef<Follower | undefined>(undefined);
  const work = useRef({incoming: [] as Row[], count: 0, n: 0, frame: 0, following: true, held: 0});

  useEffect(() => {
    const w = work.current;
    const draw = () => {
      w.frame = 0;
      const rows = w.incoming.splice(0).map((row) => ({row, n: ++w.n}));
      if (w.following) setAll((was) => ({shown: [...was.shown, ...was.held, ...rows].slice(-maxRows), held: []}));
      else {
        w.held += rows.length;
        setAll((was) => ({shown: was.shown, held: [...was.held, ...rows]}));
        if (w.held >= maxHeld) follower.current?.stop();
      }
    };
    const f = (follower.current = new Follower(topic, where, (rows) => {
      w.incoming.push(...rows);
      w.count += rows.length;
      w.frame ||= window.setTimeout(draw, 50); // also where the page is not seen, and no frames are drawn
    }, setState));
    f.start();
    const timer = setInterval(() => {
      setRate(w.count);
      w.count = 0;
    }, 1000);
    return () => {
      f.stop();
      clearInterval(timer);
      clearTimeout(w.frame);
      w.frame = 0;
    };
  }, [topic, where]);

  const follow = (on: boolean) => {
    const w = work.current;
    w.following = on;
    setFollowing(on);
    if (!on) return;
    w.held = 0;
    setAll((was) => ({shown: [...was.shown, ...was.held].slice(-maxRows), held: []}));
    follower.current?.start();
  };
  return {
    state, rows: all.shown, held: all.held.length, following, rate, follow,
    full: work.current.held >= maxHeld,
    clear: () => setAll((was) => ({shown: [], held: was.held})),
    again: () => { follower.current?.stop(); follower.current?.start(); },
  };
}
