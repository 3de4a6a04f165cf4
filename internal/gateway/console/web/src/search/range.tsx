import type {JSX} from 'preact';
import {useEffect, useState} from 'preact/hooks';
import {go} from '../address';
import {usePopover} from '../popover';
import {texts} from '../texts';
import {instant, longTime} from '../time';

/** RangePicker chooses a range of time: a distance back, two times, or all. */
export function RangePicker({from, to}: {from: string; to: string}): JSX.Element {
  const {open, setOpen, box} = usePopover();
  const [ends, setEnds] = useState<[string, string]>([from, to]);
  useEffect(() => setEnds([from === 'all' ? '' : from, to]), [from, to]);
  const choose = (a: string, b: string) => {
    setOpen(false);
    go({query: {from: a, to: b, event: ''}});
  };
  const valid = ends.every((text) => instant(text, Date.now()) !== undefined);
  return (
    <div class="range" ref={box}>
      <button class="button" aria-haspopup="dialog" aria-expanded={open} aria-label={`${texts.range.name}: ${label(from, to)}`} onClick={() => setOpen(!open)}>
        {label(from, to)} <span aria-hidden="true" class="caret">{'\u25be'}</span>
      </button>
      {open && (
        <div class="popover" role="dialog" aria-label={texts.range.name}>
          <div class="quick">
            {texts.range.words.map(([back, words]) => (
              <button key={back} class={'ghost' + (back === from && !to ? ' on' : '')} onClick={() => choose(back, '')}>{texts.range.last} {words}</button>
            ))}
            <button class={'ghost' + (from === 'all' ? ' on' : '')} onClick={() => choose('all', '')}>{texts.range.all}</button>
          </div>
          <form class="exact" onSubmit={(e) => { e.preventDefault(); if (valid) choose(ends[0] || 'all', ends[1]); }}>
            <label>{texts.range.from}<input value={ends[0]} spellcheck={false} onInput={(e) => setEnds([e.currentTarget.value.trim(), ends[1]])} /></label>
            <label>{texts.range.to}<input value={ends[1]} placeholder={texts.range.now} spellcheck={false} onInput={(e) => setEnds([ends[0], e.currentTarget.value.trim()])} /></label>
            <p class="empty-hint">{texts.range.hint}</p>
            <button class="button primary" disabled={!valid}>{texts.range.apply}</button>
          </form>
        </div>
      )}
    </div>
  );
}

function label(from: string, to: string): string {
  if (from === 'all') return texts.range.all;
  const words = texts.range.words.find(([back]) => back === from);
  if (words && !to) return `${texts.range.last} ${words[1]}`;
  if (!to && from.startsWith('-')) return `${texts.range.last} ${from.slice(1)}`;
  return `${end(from)} \u2013 ${to ? end(to) : texts.range.now}`;
}

const end = (text: string) => (/^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text)) ? longTime(Date.parse(text)) : text);
