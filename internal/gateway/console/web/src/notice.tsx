// What went wrong, and what to do about it.
import type {ComponentChildren, JSX} from 'preact';
import {useState} from 'preact/hooks';
import {Refused, Unreachable} from './client';
import {answersAgain} from './load';
import {Text} from './shown';
import {texts} from './texts';
import {setToken, token} from './token';

/** Problem says what went wrong: again tries once more, kept hears of a token, where nothing is to be tried. */
export function Problem({error, again, kept = again}: {error: Error; again?: () => void; kept?: () => void}): JSX.Element {
  if (error instanceof Refused && (error.status === 401 || error.status === 403)) {
    return (
      <Empty title={error.status === 401 && token() ? texts.token.over : error.message} hint={error.hint}>
        <TokenForm done={() => { kept?.(); answersAgain(); }} />
      </Empty>
    );
  }
  const hint = error instanceof Refused ? error.hint : error instanceof Unreachable ? texts.unreachableHint : '';
  return (
    <Empty title={error.message} hint={hint}>
      {again && <button class="button" onClick={again}>{texts.retry}</button>}
    </Empty>
  );
}

export function Empty({title, hint, children}: {title: string; hint?: string; children?: ComponentChildren}): JSX.Element {
  return (
    <div class="empty" role="status">
      <p class="empty-title"><Text text={title} line /></p>
      {hint && <p class="empty-hint"><Text text={hint} line /></p>}
      {children}
    </div>
  );
}

export function TokenForm({done}: {done: () => void}): JSX.Element {
  const [text, set] = useState('');
  const keep = (e: Event) => {
    e.preventDefault();
    setToken(text);
    done();
  };
  return (
    <form class="token-form" onSubmit={keep}>
      <label>
        {texts.token.label}
        <input type="password" autocomplete="off" spellcheck={false} value={text} onInput={(e) => set(e.currentTarget.value)} />
      </label>
      <button class="button primary" disabled={!text.trim()}>{texts.token.keep}</button>
      {token() && <button type="button" class="button" onClick={() => { setToken(''); done(); }}>{texts.token.forget}</button>}
      <p class="empty-hint">{texts.token.hint}</p>
    </form>
  );
}

/** Copy is a button that copies a text. */
export function Copy({text, label}: {text: () => string; label: string}): JSX.Element {
  const [done, set] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      fallback(text()); // a page without TLS that is not on loopback has no clipboard
    }
    set(true);
    setTimeout(() => set(false), 1200);
  };
  return <button class="button small" onClick={copy}>{done ? texts.copied : label}</button>;
}

function fallback(text: string): void {
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}
