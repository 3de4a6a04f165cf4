// The editor of a statement. It is below a shadow root, so that its styles are sheets that scripts construct: the page's
// policy allows no style elements.
import {acceptCompletion, autocompletion, type CompletionContext, completionKeymap} from '@codemirror/autocomplete';
import {history, historyKeymap, standardKeymap} from '@codemirror/commands';
import {HighlightStyle, syntaxHighlighting} from '@codemirror/language';
import {EditorState, Prec, StateEffect, StateField} from '@codemirror/state';
import {Decoration, type DecorationSet, EditorView, keymap, placeholder} from '@codemirror/view';
import {tags} from '@lezer/highlight';
import type {JSX, RefObject} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import type {SQLSchema} from '../api';
import {texts} from '../texts';
import {clickhouse, offered} from './language';
import type {Place} from './place';

export type Handle = {insert: (text: string) => void; focus: () => void};
type Tables = SQLSchema['tables'];
type Props = {text: string; tables: Tables; wrong: Place | undefined; handle: RefObject<Handle | null>; change: (text: string) => void; run: () => void};

const setWrong = StateEffect.define<Place | undefined>();
const mark = Decoration.mark({class: 'wrong', attributes: {'data-wrong': ''}});

/** What the server's message is about is underlined until the statement is another one. */
const wrongField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, change) {
    if (change.docChanged) marks = Decoration.none;
    for (const e of change.effects) {
      if (!e.is(setWrong)) continue;
      const end = change.state.doc.length;
      const at = e.value && e.value.from < end ? e.value : undefined;
      marks = at ? Decoration.set([mark.range(at.from, Math.min(at.to, end))]) : Decoration.none;
    }
    return marks;
  },
  provide: (f) => EditorView.decorations.from(f),
});

const colours = HighlightStyle.define([
  {tag: tags.keyword, color: 'var(--accent)', fontWeight: '550'},
  {tag: tags.string, color: 'var(--good)'},
  {tag: tags.number, color: 'var(--info)'},
  {tag: [tags.standard(tags.variableName), tags.typeName], color: 'var(--warned)'},
  {tag: tags.comment, color: 'var(--faint)', fontStyle: 'italic'},
]);

const look = EditorView.theme({
  '&': {color: 'var(--text)', backgroundColor: 'var(--card)', fontSize: '12.5px', border: '1px solid var(--line-strong)', borderRadius: '6px', minHeight: '120px', maxHeight: '38vh'},
  '&.cm-focused': {outline: '2px solid var(--accent)', outlineOffset: '1px'},
  '.cm-scroller': {fontFamily: 'var(--mono)', lineHeight: '1.5', overflow: 'auto', minHeight: '118px'},
  '.cm-content': {caretColor: 'var(--text)', padding: '8px 0'},
  '.cm-placeholder': {color: 'var(--faint)'},
  '.wrong': {textDecoration: 'underline wavy var(--bad) 1.5px', textUnderlineOffset: '3px', backgroundColor: 'color-mix(in srgb, var(--bad) 14%, transparent)'},
  '.cm-tooltip': {backgroundColor: 'var(--raised)', border: '1px solid var(--line-strong)', borderRadius: '8px', boxShadow: 'var(--shadow)', color: 'var(--text)'},
  '.cm-tooltip.cm-tooltip-autocomplete > ul': {fontFamily: 'var(--mono)', fontSize: '12px', maxHeight: '260px'},
  '.cm-tooltip.cm-tooltip-autocomplete > ul > li': {padding: '3px 8px'},
  '.cm-tooltip-autocomplete ul li[aria-selected]': {backgroundColor: 'var(--accent-soft)', color: 'var(--text)'},
  '.cm-completionDetail': {color: 'var(--faint)', fontStyle: 'normal', marginLeft: '18px'},
});

/** typedOver replaces what is chosen by what is typed: the browser would keep its style, as an attribute that the policy refuses. */
function typedOver(e: InputEvent, view: EditorView): boolean {
  if (e.inputType !== 'insertText' || !e.data || view.composing || view.state.selection.main.empty || /[()[\]{}'"`]/.test(e.data)) return false;
  e.preventDefault();
  view.dispatch(view.state.replaceSelection(e.data));
  return true;
}

/** Editor begins with a text, and tells of each other one. */
export function Editor({text, tables, wrong, handle, change, run}: Props): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const last = useRef({change, run, tables});
  last.current = {change, run, tables};

  useEffect(() => {
    const root = host.current!.shadowRoot ?? host.current!.attachShadow({mode: 'open'});
    const own = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: text,
        extensions: [
          history(), autocompletion({icons: false}), EditorView.lineWrapping, wrongField, look, syntaxHighlighting(colours), placeholder(texts.sql.example),
          clickhouse, clickhouse.data.of({autocomplete: (context: CompletionContext) => offered(last.current.tables, context)}),
          EditorView.domEventHandlers({beforeinput: typedOver}),
          EditorView.contentAttributes.of({'aria-label': texts.sql.statement, spellcheck: 'false', autocorrect: 'off', autocapitalize: 'off'}),
          EditorView.updateListener.of((u) => { if (u.docChanged) last.current.change(u.state.doc.toString()); }),
          Prec.highest(keymap.of([{key: 'Mod-Enter', run: () => { last.current.run(); return true; }}, {key: 'Tab', run: acceptCompletion}])),
          keymap.of([...standardKeymap, ...historyKeymap, ...completionKeymap]),
        ],
      }),
    });
    view.current = own;
    handle.current = {
      insert: (name) => { own.dispatch(own.state.replaceSelection(name)); own.focus(); },
      focus: () => own.focus(),
    };
    return () => own.destroy();
  }, []);
  useEffect(() => view.current?.dispatch({effects: setWrong.of(wrong)}), [wrong]);
  return <div class="editor" ref={host} />;
}
