// How Almanac is: also while ClickHouse or NATS is away.
import './core';
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import {AlertsCard} from './alerts';
import type {Status} from './api';
import {address, get} from './client';
import {useEvery} from './load';
import {Problem} from './notice';
import {Text} from './shown';
import {texts} from './texts';
import {ago, bytes, number, seconds} from './time';

type Ready = {ready: boolean; reasons: {reason: string; message: string}[]};
type Version = {version: string; data_format: number};
const every = 3000;

export function Health(): JSX.Element {
  const [ready, setReady] = useState<Ready>();
  const [status, setStatus] = useState<Status>();
  const [error, setError] = useState<Error>();
  const [version, setVersion] = useState<Version>();
  const look = () => {
    // It answers 503 where it is not ready, with the same body.
    fetch(address('readyz'), {cache: 'no-store'}).then((a) => a.json()).then((r: Ready) => setReady(r), () => setReady(undefined));
    get<Status>('v1/status').then((s) => { setStatus(s); setError(undefined); }, setError);
  };
  useEvery(every, look);
  useEvery(60_000, () => void get<Version>('version').then(setVersion, () => undefined));
  const state = status?.state;
  return (
    <div class="page" tabIndex={0}>
      <h1 class="unseen">{texts.health.name}</h1>
      <section class={'card ready ' + (ready?.ready ? 'good' : 'bad')} role="status">
        <div class="row">
          <span class="light"><i /><b>{!ready ? texts.loading : ready.ready ? texts.health.ready : texts.health.notReady}</b></span>
          <span class="faint end">{versions(version, status)}</span>
        </div>
        {ready && ready.reasons.length > 0 && <ul>{ready.reasons.map((r) => <li key={r.message}><Text text={r.message} line /></li>)}</ul>}
        {status?.away.map((a) => <p key={a.server} class="warned">{texts.health.away(a.server, a.since)}: <Text text={a.why} line /></p>)}
      </section>
      {error && !status && <Problem error={error} again={look} />}
      {status && (
        <div class="cards">
          <AlertsCard every={every} />
          <section class="card wide">
            <h2>{texts.health.lag}</h2>
            <div class="scrolled">
              <table>
                <thead><tr><th>{texts.health.topic}</th><th class="n">{texts.health.unrouted}</th><th class="n">{texts.health.unstored}</th><th class="n">{texts.health.shards}</th><th class="n">{texts.health.letters}</th><th class="n">{texts.health.overdue}</th></tr></thead>
                <tbody>
                  {topicsOf(status).map((name) => {
                    const lag = status.lag?.topics.find((t) => t.topic === name);
                    const own = state?.topics.find((t) => t.topic === name);
                    return (
                      <tr key={name}>
                        <td>{name}</td>
                        <Waits n={lag?.unrouted} s={lag?.unrouted_seconds} />
                        <Waits n={lag?.unstored} s={lag?.unstored_seconds} />
                        <td class="n">{own ? Object.entries(own.shards).map(([is, n]) => `${number(n)} ${is}`).join(', ') || '0' : '\u2013'}</td>
                        <td class={'n' + (own?.dead_letters ? ' warned' : '')}>{own ? number(own.dead_letters) : '\u2013'}</td>
                        <td class={'n' + (own?.retention_overdue ? ' warned' : '')}>{own ? number(own.retention_overdue) : '\u2013'}</td>
                      </tr>
                    );
                  })}
                </tbody>
              </table>
            </div>
          </section>
          <Inputs inputs={status.inputs} />
          <section class="card">
            <h2>{texts.health.streams}</h2>
            <table>
              <tbody>
                {(state?.streams ?? status.lag?.streams ?? []).map((s) => (
                  <tr key={s.stream}>
                    <td>{s.stream}</td>
                    <td class="meter-cell"><meter min={0} max={s.limit_bytes || 1} high={(s.limit_bytes || 1) * 0.8} value={s.limit_bytes ? s.bytes : 0} aria-label={s.stream} /></td>
                    <td class="n">{bytes(s.bytes)}{s.limit_bytes ? ` ${texts.health.limit} ${bytes(s.limit_bytes)}` : ''}</td>
                    <td class="n faint wide-only">{number(s.messages)} {texts.health.messages}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            <h2>{texts.health.disks}</h2>
            <table aria-label={texts.health.disks}>
              <tbody>
                {status.disks.map((d) => (
                  <tr key={d.server + d.disk}>
                    <td>{d.server}</td>
                    <td class="meter-cell"><meter min={0} max={d.total_bytes || 1} high={d.total_bytes * 0.9} value={d.total_bytes - d.free_bytes} aria-label={`${d.server} ${d.disk}`} /></td>
                    <td class="n">{d.silent_since ? texts.health.unknown : texts.health.free(bytes(d.free_bytes), bytes(d.total_bytes))}</td>
                    <td class="n faint wide-only">{d.disk}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            {!status.disks.length && <p class="faint">{texts.health.unknown}</p>}
          </section>
          <section class="card">
            <h2>{texts.health.members}</h2>
            <table><tbody>{Object.entries(state?.members ?? {}).map(([role, n]) => <tr key={role}><td>{role}</td><td class={'n' + (n ? '' : ' warned')}>{n}</td></tr>)}</tbody></table>
            <h2>{texts.health.erasures}</h2>
            <table><tbody>{Object.entries(state?.erasures ?? {}).map(([is, n]) => <tr key={is}><td>{is}</td><td class="n">{n}</td></tr>)}</tbody></table>
            {!Object.keys(state?.erasures ?? {}).length && <p class="faint">{texts.health.noErasures}</p>}
          </section>
        </div>
      )}
      {status?.state_at && Date.now() - Date.parse(status.state_at) > 3 * every && <p class="faint">{texts.health.old(ago(status.state_at))}</p>}
    </div>
  );
}

const topicsOf = (s: Status) => [...new Set([...(s.lag?.topics ?? []).map((t) => t.topic), ...(s.state?.topics ?? []).map((t) => t.topic)])].sort();

const versions = (v: Version | undefined, s: Status | undefined) =>
  [v && `Almanac ${v.version}`, s?.servers.nats && `NATS ${s.servers.nats}`, s?.servers.clickhouse && `ClickHouse ${s.servers.clickhouse}`].filter(Boolean).join(' \u00b7 ');

/** Inputs are what came by this gateway since it began, the latest first. */
function Inputs({inputs}: {inputs: Status['inputs']}): JSX.Element {
  const sorted = [...inputs].sort((a, b) => a.last_event_seconds_ago - b.last_event_seconds_ago);
  return (
    <section class="card wide" aria-label={texts.health.inputs}>
      <h2 title={texts.health.inputsHint}>{texts.health.inputs}</h2>
      {!sorted.length ? <p class="faint">{texts.health.noInputs}</p> : (
        <div class="scrolled">
          <table>
            <thead><tr><th>{texts.health.input}</th><th>{texts.health.topic}</th><th class="n">{texts.health.lastEvent}</th><th class="n">{texts.health.rate}</th><th class="n">{texts.health.events}</th></tr></thead>
            <tbody>
              {sorted.map((i) => (
                <tr key={i.input + '/' + i.topic}>
                  <td>{i.input}</td>
                  <td>{i.topic}</td>
                  <td class="n" title={i.last_event}>{texts.alerts.ago(seconds(i.last_event_seconds_ago))}</td>
                  <td class="n">{texts.tail.rate(rate(i.events_per_second))}</td>
                  <td class="n">{number(i.events)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  );
}

const rate = (n: number) => (n >= 10 || n === 0 ? number(Math.round(n)) : n.toFixed(n < 0.1 ? 2 : 1));

/** Waits is what is on the way, by how long the oldest of it has waited. */
function Waits({n, s}: {n: number | undefined; s: number | undefined}): JSX.Element {
  if (n === undefined) return <td class="n faint">{texts.health.unknown}</td>;
  return <td class={'n' + ((s ?? 0) > 30 ? ' warned' : '')}>{n > 0 && s !== undefined ? `${seconds(s)} ` : ''}<span class="faint">{n > 0 ? texts.health.waiting(number(n)) : texts.health.nothing}</span></td>;
}
