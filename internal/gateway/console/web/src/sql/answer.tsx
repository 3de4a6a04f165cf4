// What a statement answered: a table, or a chart of its numbers.
import type {JSX} from 'preact';
import {useMemo} from 'preact/hooks';
import {tabled} from '../charts/data';
import {type Shape, shapes} from '../charts/spec';
import {textOf} from '../events';
import {lazy} from '../lazy';
import {Empty} from '../notice';
import {Text} from '../shown';
import {texts} from '../texts';
import type {Answer} from './statement';

const maxCell = 300; // characters of a cell that are drawn
const Plot = lazy(() => import('../charts/plot').then((p) => p.Plot));

/** As is how an answer is shown: as a table, or as a chart. */
export type As = Shape | '';

export function AnswerView({answer, as: shape, show: setShape}: {answer: Answer; as: As; show: (as: As) => void}): JSX.Element {
  return (
    <>
      <div class="list-head" role="group" aria-label={texts.sql.as}>
        <button class={'ghost small' + (shape === '' ? ' on' : '')} aria-pressed={shape === ''} onClick={() => setShape('')}>{texts.sql.table}</button>
        {shapes.map((s) => <button key={s} class={'ghost small' + (s === shape ? ' on' : '')} aria-pressed={s === shape} onClick={() => setShape(s)}>{texts.charts.shapes[s]}</button>)}
      </div>
      {shape ? <Chart answer={answer} shape={shape} /> : <Table answer={answer} />}
    </>
  );
}

function Chart({answer, shape}: {answer: Answer; shape: Shape}): JSX.Element {
  const data = useMemo(() => {
    try {
      return tabled(answer);
    } catch (e) {
      return e as Error;
    }
  }, [answer]);
  if (data instanceof Error) return <Empty title={data.message} />;
  if (!data.lines.length) return <Empty title={texts.charts.empty} />;
  return <div class="answer-chart"><Plot data={data} shape={shape} label={texts.sql.chart} height={340} /></div>;
}

function Table({answer}: {answer: Answer}): JSX.Element {
  const right = answer.types.map((t) => /^(Nullable\()?(U?Int|Float|Decimal)/.test(t));
  const cell = (value: unknown) => (value === null ? <i class="faint">NULL</i> : <Text text={short(textOf(value))} line />);
  return (
    <div class="answer">
      <table aria-label={texts.sql.answer}>
        <thead><tr>{answer.names.map((n, i) => <th key={i} class={right[i] ? 'n' : ''} title={answer.types[i]}><Text text={n} line /></th>)}</tr></thead>
        <tbody>{answer.rows.map((r, y) => <tr key={y}>{r.map((v, i) => <td key={i} class={right[i] ? 'n' : ''} title={textOf(v).length > maxCell ? texts.sql.cutCell : undefined}>{cell(v)}</td>)}</tr>)}</tbody>
      </table>
      {answer.cut && <p class="list-foot">{texts.sql.cut}</p>}
    </div>
  );
}

const short = (text: string) => (text.length > maxCell ? text.slice(0, maxCell) + '\u2026' : text);
