// Where events are, and the proof that none is missing.
import './core';
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {write} from './address';
import type {Proof as Proven, Shards, Topic} from './api';
import {get, post, Refused} from './client';
import {DeadCard} from './dead';
import {type Loaded, useLoad} from './load';
import {Empty, Problem} from './notice';
import {texts} from './texts';
import {ago, bytes, longTime, number, seconds} from './time';

type Shard = Shards['shards'][number];

export function Proof({topics}: {topics: Topic[]}): JSX.Element {
  const shards = useLoad('shards', (signal) => get<Shards>('v1/shards', {}, signal));
  const [chosen, choose] = useState<Shard>();
  const all = shards.value?.shards ?? [];
  return (
    <div class="page">
      <ProofCard shards={shards} />
      <DeadCard />
      {shards.error && !shards.value && <Problem error={shards.error} again={shards.again} />}
      {shards.value && !all.length && <Empty title={texts.proof.empty} />}
      {all.length > 0 && <p class="faint">{texts.proof.hint}</p>}
      <div class="maps">
      {topics.filter((t) => all.some((s) => s.topic === t.name)).map((t) => (
        <TopicMap key={t.name} topic={t.name} shards={all.filter((s) => s.topic === t.name)} chosen={chosen} choose={choose} />
      ))}
      </div>
    </div>
  );
}

function ProofCard({shards}: {shards: Loaded<Shards>}): JSX.Element {
  const last = useLoad('proof', (signal) => get<Proven>('v1/verify', {}, signal).catch((e) => {
    if (e instanceof Refused && e.code === 'no_proof') return undefined;
    throw e;
  }));
  const [made, setMade] = useState<Proven>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<Error>();
  const verify = () => {
    setBusy(true);
    setError(undefined);
    post<Proven>('v1/verify').then((p) => { setMade(p); shards.again(); }, setError).finally(() => setBusy(false));
  };
  const proof = made ?? last.value;
  const r = proof?.report;
  const figures = r && ([[texts.proof.accepted, r.accepted], [texts.proof.stored, r.stored], [texts.proof.pending, r.pending], [texts.proof.dead, r.dead], [texts.proof.missing, r.missing], [texts.proof.doubled, r.doubled], [texts.proof.erased, r.erased], [texts.proof.dropped, r.dropped]] as [string, number][]);
  const bad = [texts.proof.missing, texts.proof.doubled];
  return (
    <section class={'card ready ' + (!proof ? '' : proof.ok ? 'good' : 'bad')}>
      <div class="row">
        <span class="light" role="status"><i /><b>{busy ? texts.proof.verifying : !proof ? texts.proof.never : proof.ok ? texts.proof.passed(ago(proof.at)) : texts.proof.failed(ago(proof.at))}</b></span>
        {proof && !busy && <span class="faint">{texts.proof.took} {seconds(proof.took_seconds)}</span>}
        <span class="end"><button class="button primary" onClick={verify} disabled={busy}>{texts.proof.verify}</button></span>
      </div>
      {figures && <dl class="figures">{figures.map(([name, n]) => <div key={name} class={n > 0 && bad.includes(name) ? 'bad' : ''}><dt>{name}</dt><dd>{number(n)}</dd></div>)}</dl>}
      {error && <Problem error={error} again={verify} />}
    </section>
  );
}

function TopicMap({topic, shards, chosen, choose}: {topic: string; shards: Shard[]; chosen: Shard | undefined; choose: (s: Shard | undefined) => void}): JSX.Element {
  const months = [...new Set(shards.map((s) => s.month))].sort().reverse();
  const lanes = [...new Set(shards.map((s) => s.lane))].sort((a, b) => a - b);
  const most = Math.max(...shards.map((s) => s.rows), 1);
  const own = chosen?.topic === topic ? shards.find((s) => s.name === chosen.name) : undefined;
  return (
    <section class="card map" aria-label={`${texts.proof.name}: ${topic}`}>
      <h2>{topic}</h2>
      <div class="scrolled">
        <table>
          <thead><tr><th />{lanes.map((l) => <th key={l}>{texts.proof.lane(l)}</th>)}</tr></thead>
          <tbody>
            {months.map((m) => (
              <tr key={m}>
                <th scope="row">{m}</th>
                {lanes.map((l) => (
                  <td key={l}>
                    {shards.filter((s) => s.month === m && s.lane === l).sort((a, b) => (a.min_ts < b.min_ts ? -1 : 1)).map((s) => (
                      <button key={s.name} class={`shard ${s.status}` + (own === s ? ' on' : '')} style={{width: `${18 + 60 * Math.sqrt(s.rows / most)}px`}} aria-pressed={own === s} title={described(s)} aria-label={`${short(s.rows)}: ${described(s)}`} onClick={() => choose(own === s ? undefined : s)}>
                        {short(s.rows)}
                      </button>
                    ))}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {own && <ShardCard shard={own} />}
    </section>
  );
}

const described = (s: Shard) => `${s.shard} ${s.status}, ${number(s.rows)} ${texts.proof.rows}`;

const short = (n: number) => (n >= 1e6 ? (n / 1e6).toFixed(1) + 'M' : n >= 1e3 ? Math.round(n / 1e3) + 'k' : String(n));

function ShardCard({shard}: {shard: Shard}): JSX.Element {
  const rows: [string, string][] = [
    [texts.proof.status, shard.status + (shard.reason ? `, ${texts.proof.why} ${shard.reason}` : '')],
    [texts.proof.rows, number(shard.rows)],
    [texts.proof.bytes, bytes(shard.bytes)],
    [texts.proof.volume, (shard.places ?? []).map((p) => `${p.volume} ${bytes(p.bytes)}`).join(', ')],
    [texts.proof.head, `${number(shard.stored)} / ${number(shard.frames)}`],
    [texts.proof.range, longTime(Date.parse(shard.min_ts))],
    [texts.proof.until, longTime(Date.parse(shard.max_ts))],
    [texts.proof.written, shard.last_write_at ? longTime(Date.parse(shard.last_write_at)) : '\u2013'],
  ];
  return (
    <div class="shard-card">
      <code>{shard.shard}</code>
      <dl class="figures small">{rows.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      <a class="button" href={write({page: 'search', query: {topic: shard.topic, where: `shard = '${shard.shard}'`, from: shard.min_ts, to: new Date(Date.parse(shard.max_ts) + 1).toISOString()}})}>{texts.proof.search}</a>
    </div>
  );
}
