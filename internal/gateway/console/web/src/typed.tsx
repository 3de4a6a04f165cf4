// A confirmation that is typed, for what cannot be undone.
import type {ComponentChildren, JSX} from 'preact';
import {useState} from 'preact/hooks';

type Props = {label: ComponentChildren; word: string; act: ComponentChildren; busy: boolean; kind: string; run: () => Promise<void>};

/** Typed does something once a word is typed. kind is the class of its button. */
export function Typed({label, word, act, busy, kind, run}: Props): JSX.Element {
  const [typed, setTyped] = useState('');
  const off = typed !== word || busy;
  return (
    <form class="row confirm" onSubmit={(e) => { e.preventDefault(); if (!off) void run(); }}>
      <label class="row"><span>{label}</span>
        <input value={typed} class="mono" spellcheck={false} autocomplete="off" onInput={(e) => setTyped(e.currentTarget.value)} />
      </label>
      <button class={'button ' + kind} disabled={off}>{act}</button>
    </form>
  );
}
