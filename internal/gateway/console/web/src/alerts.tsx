// The alerts that fire, where the token may read them: that needs the role read of all topics.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {Alerts} from './api';
import {get, Refused} from './client';
import {useEvery} from './load';
import {plain, Text} from './shown';
import {texts} from './texts';
import {ago, number} from './time';

export function AlertsCard({every}: {every: number}): JSX.Element | null {
  const [held, set] = useState<Alerts>();
  const [error, setError] = useState<Error>();
  useEvery(every, () => void get<Alerts>('v1/alerts').then((a) => { set(a); setError(undefined); }, setError));
  if (error instanceof Refused && (error.status === 401 || error.status === 403)) return null;
  if (!held && !error) return null;
  const alerts = [...(held?.alerts ?? [])].sort((a, b) => Number(b.state === 'firing') - Number(a.state === 'firing') || (a.since < b.since ? 1 : -1));
  const rules = (held?.topics ?? []).reduce((sum, t) => sum + t.rules, 0);
  return (
    <section class="card wide" aria-label={texts.alerts.name}>
      <h2>{texts.alerts.name}</h2>
      {error && <p class="warned"><Text text={error.message} line /></p>}
      {alerts.length > 0 && (
        <div class="scrolled">
          <table>
            <thead><tr><th>{texts.alerts.state}</th><th>{texts.alerts.alert}</th><th>{texts.health.topic}</th><th>{texts.alerts.of}</th><th class="n">{texts.alerts.count}</th><th class="n">{texts.alerts.since}</th></tr></thead>
            <tbody>
              {alerts.map((a) => (
                <tr key={a.key}>
                  <td class={a.state === 'firing' ? 'bad' : 'warned'}>{a.state}</td>
                  <td title={plain(a.annotations['summary'] ?? '')}><Text text={a.alert} line />{a.annotations['summary'] && <div class="faint"><Text text={a.annotations['summary']} line /></div>}</td>
                  <td>{a.topic}</td>
                  <td>{a.by && <Text text={`${a.by} ${a.value ?? ''}`} line />}</td>
                  <td class="n">{number(Number(a.count))}</td>
                  <td class="n" title={a.since}>{texts.alerts.ago(ago(a.since))}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {held && !alerts.length && <p class="faint">{rules ? texts.alerts.quiet(number(rules)) : texts.alerts.none}</p>}
    </section>
  );
}
