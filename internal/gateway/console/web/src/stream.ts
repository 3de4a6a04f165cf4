// A tail: events as they are routed, by a stream of NDJSON that goes on from its position after it was cut.
import {ask, Refused, topicPath} from './client';
import {type Row, textOf} from './events';
import {parse} from './json';

export type State = {is: 'connecting' | 'open' | 'stopped'} | {is: 'lost'; again: number} | {is: 'refused'; error: Error};

const longestWait = 10_000;
const longestSilence = 40_000; // the server says each 15 s that it is there: a connection that a sleep or a proxy ended says nothing

/** Follower reads a topic from now on, or from its position, which it has before the first event. stop ends it; start goes on from where it was. */
export class Follower {
  private position = '';
  private under?: AbortController;

  constructor(private readonly topic: string, private readonly where: string, private readonly events: (rows: Row[]) => void, private readonly state: (s: State) => void) {}

  start(): void {
    if (this.under) return;
    const own = (this.under = new AbortController());
    void this.run(own.signal);
  }

  stop(): void {
    this.under?.abort();
    this.under = undefined;
    this.state({is: 'stopped'});
  }

  private async run(signal: AbortSignal): Promise<void> {
    for (let wait = 500; !signal.aborted;) {
      const silent = new AbortController();
      let watch = 0;
      const alive = () => {
        clearTimeout(watch);
        watch = window.setTimeout(() => silent.abort(), longestSilence);
      };
      try {
        this.state({is: 'connecting'});
        alive();
        const answer = await ask(topicPath(this.topic, 'tail'), {where: this.where, from_pos: this.position}, {headers: {Accept: 'application/x-ndjson'}, signal: AbortSignal.any([signal, silent.signal])});
        this.position = answer.headers.get('Almanac-Position') ?? this.position;
        this.state({is: 'open'});
        await this.read(answer.body!, signal, () => {
          wait = 500;
          alive();
        });
      } catch (e) {
        if (signal.aborted) return;
        if (e instanceof Refused && e.status < 500 && e.status !== 429) return this.state({is: 'refused', error: e});
      } finally {
        clearTimeout(watch);
      }
      if (signal.aborted) return;
      this.state({is: 'lost', again: wait});
      await pause(wait, signal);
      wait = Math.min(wait * 2, longestWait);
    }
  }

  private async read(body: ReadableStream<Uint8Array>, signal: AbortSignal, alive: () => void): Promise<void> {
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    let rest = '';
    for (;;) {
      const {done, value} = await reader.read();
      if (done || signal.aborted) return; // what is left of a line comes again: it is behind the position
      alive();
      const lines = (rest + value).split('\n');
      rest = lines.pop()!;
      const rows = lines.filter(Boolean).map((line) => parse(line) as Row);
      if (!rows.length) continue;
      this.position = textOf(rows.at(-1)!['_pos']);
      this.events(rows);
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      done();
    });
  });
}
