// Days as bars: those of the month before are fainter.
import type {JSX} from 'preact';
import {useState} from 'preact/hooks';
import type {Usage} from '../api';
import {texts} from '../texts';
import {short} from './amount';

type Bill = Usage['bills'][number];
const height = 120;

export function Days({bills, begin, amount}: {bills: Bill[]; begin: string; amount: (b: Bill) => number}): JSX.Element {
  const [over, setOver] = useState<Bill>();
  const most = Math.max(...bills.map(amount), 0);
  const width = 100 / Math.max(bills.length, 1);
  const shown = over ?? bills.at(-1);
  return (
    <figure class="days" aria-label={texts.usage.days}>
      <figcaption><h3>{texts.usage.days}</h3>{shown && <span class="faint">{shown.from.slice(0, 10)} <b>{short(amount(shown))}</b></span>}</figcaption>
      <svg viewBox={`0 0 100 ${height}`} width="100%" height={height} preserveAspectRatio="none" role="img" aria-label={texts.usage.days} onPointerLeave={() => setOver(undefined)}>
        {bills.map((b, i) => {
          const h = most ? Math.max((Math.max(amount(b), 0) / most) * (height - 4), 0.5) : 0.5;
          return (
            <g key={b.from} onPointerEnter={() => setOver(b)}>
              <rect x={i * width} y={0} width={width} height={height} fill="transparent" />
              <rect x={i * width + width * 0.1} y={height - h} width={width * 0.8} height={h} class={(Date.parse(b.from) < Date.parse(begin) ? 'past' : '') + (b === over ? ' over' : '')} />
            </g>
          );
        })}
      </svg>
      <div class="row faint small-text"><span>{bills[0]?.from.slice(0, 10)}</span><span class="end">{bills.at(-1)?.from.slice(0, 10)}</span></div>
    </figure>
  );
}
