// The record of erasures: how far each is, and what became of it. It can be printed.
import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {write} from '../address';
import type {ErasureProof, Job, Jobs} from '../api';
import {get, post, Refused} from '../client';
import {Problem} from '../notice';
import {save} from '../save';
import {Text} from '../shown';
import {texts} from '../texts';
import {longTime, number} from '../time';
import {whom} from './erase';
import {held} from './plan';

const lookAgain = 700; // milliseconds between two looks at one that is being carried out

export function Records({ids, close}: {ids: string[]; close: () => void}): JSX.Element {
  const [proofs, setProofs] = useState<Record<string, ErasureProof>>({});
  const done = ids.every((id) => proofs[id]?.erasure.state === 'erased');
  const file = () => save(new Blob([JSON.stringify(ids.map((id) => proofs[id]), null, 2)], {type: 'application/json'}), `erasure-${ids[0]}.json`);
  return (
    <div class="page erase">
      <header class="row">
        <h1>{texts.erase.recordOf}</h1>
        <span class="row end no-print">
          <button class="button" disabled={!done} onClick={() => print()}>{texts.erase.print}</button>
          <button class="button" disabled={!done} onClick={file}>{texts.erase.save}</button>
          <a class="button" href={write({page: 'proof', query: {}})}>{texts.erase.verify}</a>
          <button class="button" onClick={close}>{texts.erase.back}</button>
        </span>
      </header>
      {ids.map((id) => <Record key={id} id={id} have={(p) => setProofs((was) => ({...was, [id]: p}))} />)}
    </div>
  );
}

function Record({id, have}: {id: string; have: (p: ErasureProof) => void}): JSX.Element {
  const [proof, setProof] = useState<ErasureProof>();
  const [job, setJob] = useState<Job>();
  const [error, setError] = useState<Error>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    let timer = 0;
    const look = async () => {
      try {
        // The record counts what is left and opens frames, so it is asked for when the job has ended.
        const {jobs} = await get<Jobs>('v1/jobs', {kind: 'erasure'}, stop.signal);
        const own = jobs.filter((j) => j.request['erasure'] === id).sort((a, b) => (a.created_at < b.created_at ? 1 : -1))[0];
        setJob(own);
        if (own && (own.state === 'queued' || own.state === 'running')) {
          setError(undefined);
          timer = window.setTimeout(look, lookAgain);
          return;
        }
        const p = await get<ErasureProof>(`v1/erasures/${encodeURIComponent(id)}`, {}, stop.signal);
        setProof(p);
        have(p);
        setError(undefined);
      } catch (e) {
        if (stop.signal.aborted) return;
        setError(e as Error);
        if (!(e instanceof Refused && e.status < 500)) timer = window.setTimeout(look, lookAgain);
      }
    };
    void look();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, round]);
  const again = () => setRound((n) => n + 1);
  const resume = () => post<Job>(`v1/erasures/${encodeURIComponent(id)}/resume`).then(again, setError);
  if (error) return <section class="card" aria-label={id}><Problem error={error} again={again} /></section>;
  if (!proof) {
    return (
      <section class="card" aria-label={id}>
        <p role="status"><b>{job ? `${job.topic}: ${job.state}` : texts.loading}</b> <span class="faint">{job?.progress}</span></p>
        <progress aria-label={texts.erase.progress} {...share(job?.progress)} />
      </section>
    );
  }
  const e = proof.erasure;
  const facts: [string, string][] = [
    [texts.erase.id, e.id], [texts.topic, e.topic], [texts.erase.whom, whom(e.users, e.where)], [texts.erase.range, range(e.from, e.to)],
    [texts.erase.reason, e.reason ?? ''], [texts.erase.at, longTime(Date.parse(e.created_at))], [texts.erase.erasedAt, e.erased_at ? longTime(Date.parse(e.erased_at)) : ''],
    [texts.erase.events, number(e.rows)], [texts.erase.sums, e.diffs ? number(e.diffs) : ''], [texts.erase.purged, e.purged ? texts.erase.purgedOf(number(e.purged.frames), number(e.purged.erased)) : ''], [texts.erase.hash, proof.hash ?? ''],
  ];
  const nothing = e.state === 'erased' && e.rows === 0 && !e.diffs && !e.purged?.erased && !e.purged?.dead && proof.matching === 0;
  return (
    <section class={'card ready ' + (proof.certified ? 'good' : nothing ? '' : 'bad')} aria-label={`${texts.erase.recordOf} ${e.topic}`}>
      <div class="row">
        <span class="light" role="status"><i /><b>{proof.certified ? texts.erase.certified : nothing ? texts.erase.nothing : texts.erase.notCertified}</b></span>
        {job?.state === 'failed' && <span class="bad"><Text text={job.error ?? ''} line /></span>}
        {e.state !== 'erased' && <button class="button small no-print" onClick={resume}>{texts.erase.resume}</button>}
      </div>
      {proof.not_certified && !nothing && <p class="warned"><Text text={proof.not_certified} line /></p>}
      <dl class="facts">{facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd><Text text={value} /></dd></div>)}</dl>
      {proof.shards.length > 0 && (
        <div class="scrolled">
          <table>
            <thead><tr><th>{texts.erase.shard}</th><th class="n">{texts.erase.before}</th><th class="n">{texts.erase.erased}</th><th class="n">{texts.erase.after}</th><th>{texts.erase.rewritten}</th></tr></thead>
            <tbody>{proof.shards.map((s) => <tr key={s.name}><td><code>{s.name}</code></td><td class="n">{number(s.before)}</td><td class="n">{number(s.rows)}</td><td class="n">{number(s.after)}</td><td class="nowrap">{longTime(Date.parse(s.rewritten_at))}</td></tr>)}</tbody>
          </table>
        </div>
      )}
      {proof.old_parts > 0 && proof.old_parts_gone_by && <p class="faint">{texts.erase.oldParts(number(proof.old_parts), longTime(Date.parse(proof.old_parts_gone_by)))}</p>}
      {!nothing && proof.streams.filter((s) => s.messages > 0).map((s) => <p key={s.stream} class="faint">{held(s)}</p>)}
    </section>
  );
}

/** share is how far a job is, of what it says: 3 of 8 shards. */
function share(progress: string | undefined): {value?: number; max?: number} {
  const found = /^(\d+) of (\d+) /.exec(progress ?? '');
  return found && Number(found[2]) > 0 ? {value: Number(found[1]), max: Number(found[2])} : {};
}

/** range is from and to, in nanoseconds; what is open is left out. Their digits are more than a number keeps, which is enough for seconds. */
function range(from: unknown, to: unknown): string {
  const open = 9.2e18;
  const a = Number(from), b = Number(to);
  if (a <= 0 && b >= open) return '';
  return `${a > 0 ? longTime(a / 1e6) : ''} \u2013 ${b < open ? longTime(b / 1e6) : ''}`;
}
