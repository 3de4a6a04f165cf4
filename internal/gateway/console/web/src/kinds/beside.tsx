// Two JSON values beside each other, with what differs marked.
import type {JSX} from 'preact';
import {useMemo, useState} from 'preact/hooks';
import {Text} from '../shown';
import {texts} from '../texts';
import {difference, folded, type Line, written} from './difference';

type Side = {name: string; value: unknown; none?: string};

const maxLines = 3000; // that are drawn

export function Beside({label, left, right}: {label: string; left: Side; right: Side}): JSX.Element {
  const [whole, setWhole] = useState(false);
  const lines = useMemo(() => difference(written(left.value), written(right.value)), [left.value, right.value]);
  const changed = lines.filter((l) => !l.same).length;
  const shown = (whole || !changed ? lines : folded(lines)).slice(0, maxLines);
  return (
    <div class="beside" role="table" aria-label={label}>
      <div class="beside-row head" role="row"><span role="columnheader">{left.name}</span><span role="columnheader">{right.name}</span></div>
      {!changed && <div class="beside-fold faint" role="row"><span role="cell">{texts.beside.same}</span></div>}
      {shown.map((line, i) => typeof line === 'number'
        ? <div key={i} class="beside-fold" role="row"><span role="cell"><button class="ghost small" onClick={() => setWhole(true)}>{texts.beside.equal(line)}</button></span></div>
        : <Row key={i} line={line} />)}
      {left.value === undefined && left.none && <div class="beside-fold faint" role="row"><span role="cell">{left.none}</span></div>}
      {right.value === undefined && right.none && <div class="beside-fold faint" role="row"><span role="cell">{right.none}</span></div>}
    </div>
  );
}

const cell = (text: string | undefined, of: string) => (
  <pre role="cell" class={text === undefined ? 'nothing' : of}>{text === undefined ? '' : <Text text={text} />}</pre>
);

const Row = ({line: l}: {line: Line}) => (
  <div class={'beside-row' + (l.same ? ' same' : '')} role="row">{cell(l.left, l.same ? '' : 'gone')}{cell(l.right, l.same ? '' : 'came')}</div>
);
