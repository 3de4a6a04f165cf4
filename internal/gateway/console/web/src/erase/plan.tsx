// What would go, topic by topic.
import type {JSX} from 'preact';
import {Refused} from '../client';
import {Text} from '../shown';
import {texts} from '../texts';
import {longTime, number} from '../time';
import type {Planned} from './erase';

type Props = {planned: Planned[]; chosen: string[]; choose: (topics: string[]) => void};

export function PlanTable({planned, chosen, choose}: Props): JSX.Element {
  const rows = planned.reduce((sum, p) => sum + (p.plan?.rows ?? 0), 0);
  const sums = planned.some((p) => p.plan?.diffs);
  const waiting = Math.max(...planned.map((p) => p.plan?.waiting ?? 0));
  return (
    <>
      <div class="scrolled">
        <table>
          <thead><tr><th>{texts.topic}</th><th class="n">{texts.erase.events}</th><th class="n">{texts.erase.shards}</th>{sums && <th class="n">{texts.erase.sums}</th>}<th class="wide-only">{texts.erase.streams}</th></tr></thead>
          <tbody>
            {[...planned].sort((a, b) => (b.plan?.rows ?? 1) - (a.plan?.rows ?? 1)).map(({request, plan, error}) => (
              <tr key={request.topic}>
                <td><label class="row"><input type="checkbox" aria-label={texts.erase.take(request.topic)} disabled={!plan} checked={chosen.includes(request.topic)} onChange={(e) => choose(e.currentTarget.checked ? [...chosen, request.topic] : chosen.filter((n) => n !== request.topic))} />{request.topic}</label></td>
                {!plan ? <td colSpan={4} class="warned"><Text text={`${error?.message ?? ''} ${error instanceof Refused ? error.hint : ''}`} line /></td> : (
                  <>
                    <td class="n">{number(plan.rows)}</td>
                    <td class="n">{number(plan.shards.length)}</td>
                    {sums && <td class="n">{plan.diffs ? number(plan.diffs) : ''}</td>}
                    <td class="faint wide-only">{plan.streams.filter((s) => (plan.rows > 0 && s.messages > 0) || s.staying > 0).map((s) => <div key={s.stream}>{held(s)}</div>)}</td>
                  </>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p role="status"><b>{texts.erase.would(number(rows), number(planned.filter((p) => p.plan && p.plan.rows > 0).length))}</b> {waiting > 0 && texts.erase.waiting(number(waiting))}</p>
    </>
  );
}

type Holding = NonNullable<Planned['plan']>['streams'][number];

/** held says what a stream may have, and until when. */
export const held = (s: Holding) => texts.erase.held(s.stream, number(s.messages), s.gone_by ? longTime(Date.parse(s.gone_by)) : '', s.staying ? number(s.staying) : '');
