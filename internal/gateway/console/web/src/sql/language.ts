// ClickHouse's SQL as far as an editor needs it: what is coloured, and what is offered.
import type {Completion, CompletionContext, CompletionResult} from '@codemirror/autocomplete';
import {StreamLanguage} from '@codemirror/language';
import type {SQLSchema} from '../api';

type Tables = SQLSchema['tables'];

const keywords = 'select distinct on from prewhere where group by with rollup cube totals having order limit offset ties window over partition range unbounded preceding following current row union all intersect except join inner left right full cross any asof semi anti global using as and or not in is null like ilike between case when then else end cast interval exists array final sample settings format describe show explain asc desc nulls last first qualify fill step to year quarter month week day hour minute second true false'.split(' ');
const types = 'UInt8 UInt16 UInt32 UInt64 UInt128 UInt256 Int8 Int16 Int32 Int64 Int128 Int256 Float32 Float64 Decimal String FixedString UUID Date Date32 DateTime DateTime64 Array Map Tuple Nullable LowCardinality IPv4 IPv6 Bool JSON'.split(' ');
const functions = 'count sum avg min max any anyLast argMin argMax uniq uniqExact quantile quantiles median topK groupArray groupUniqArray sumIf countIf avgIf sumMap stddevPop varPop corr now today toDate toDateTime toDateTime64 toStartOfInterval toStartOfMinute toStartOfFiveMinutes toStartOfTenMinutes toStartOfHour toStartOfDay toStartOfWeek toStartOfMonth toYYYYMM formatDateTime dateDiff toIntervalSecond toIntervalMinute toIntervalHour toUInt64 toInt64 toFloat64 toFloat64OrZero toString toUUID lower upper length substring position extract replaceAll splitByChar concat trim startsWith endsWith if multiIf coalesce ifNull nullIf isNull empty notEmpty has arrayJoin arrayMap arrayFilter arraySum mapKeys mapValues mapContains JSONExtractString JSONExtractInt JSONExtractFloat tuple round floor ceil abs greatest least cityHash64 row_number rank lagInFrame bar formatReadableSize'.split(' ');

const isKeyword = new Set(keywords);
const isType = new Set(types);
const isFunction = new Set(functions);

type State = {within: '' | '/*' | "'" | '"' | '`'};

/** clickhouse colours a line from its left, with what it is within at its begin. */
export const clickhouse = StreamLanguage.define<State>({
  name: 'sql',
  startState: () => ({within: ''}),
  token(line, state) {
    if (state.within === '/*') {
      state.within = line.skipTo('*/') ? (line.match('*/'), '') : (line.skipToEnd(), '/*');
      return 'comment';
    }
    if (state.within) {
      const end = state.within;
      const of = end === "'" ? 'string' : 'variableName';
      for (let c = line.next(); c; c = line.next()) {
        if (c === '\\') line.next();
        else if (c === end) {
          state.within = '';
          break;
        }
      }
      return of;
    }
    if (line.eatSpace()) return null;
    if (line.match('--') || line.match('#!') || line.match('# ')) return line.skipToEnd(), 'comment';
    if (line.match('/*')) return (state.within = '/*'), 'comment';
    if (line.match(/^\d[\w.]*/)) return 'number';
    const word = line.match(/^[A-Za-z_]\w*/) as RegExpMatchArray | null;
    if (word) return isKeyword.has(word[0].toLowerCase()) ? 'keyword' : isType.has(word[0]) ? 'typeName' : isFunction.has(word[0]) && line.peek() === '(' ? 'builtin' : 'variableName';
    const c = line.next();
    if (c === "'" || c === '"' || c === '`') state.within = c;
    return c === "'" ? 'string' : null;
  },
  languageData: {commentTokens: {line: '--', block: {open: '/*', close: '*/'}}},
});

const words: Completion[] = [...keywords.map((w) => ({label: w.toUpperCase(), type: 'keyword', boost: -2})), ...types.map((w) => ({label: w, type: 'type', boost: -3})), ...functions.map((w) => ({label: w, apply: w, detail: '()', type: 'function', boost: -1}))];

/** offered are the words that may stand at a place: columns of the tables that the statement names, tables, and the language's own. */
export function offered(tables: Tables, context: CompletionContext): CompletionResult | null {
  const before = context.matchBefore(/(\w+\.)?\w*$/);
  const text = before?.text ?? '';
  if (!text && !context.explicit) return null;
  if (/^\d/.test(text) || quoted(context)) return null;
  const columns = (t: Tables[number]) => t.columns.map((c) => ({label: c.name, type: 'property', detail: c.type, boost: 2}));
  const [of, rest] = text.includes('.') ? text.split('.') as [string, string] : ['', text];
  const from = context.pos - rest.length;
  if (of) {
    const table = tables.find((t) => t.name === of);
    return table ? {from, options: columns(table), validFor: /^\w*$/} : null;
  }
  const used = new Set(context.state.doc.toString().match(/\w+/g));
  const named = tables.filter((t) => used.has(t.name));
  const seen = new Map(named.flatMap(columns).map((c) => [c.label, c]));
  return {from, options: [...seen.values(), ...tables.map((t) => ({label: t.name, type: 'class', boost: 1})), ...words], validFor: /^\w*$/};
}

/** quoted reports whether a place is within a text or a comment. */
function quoted(context: CompletionContext): boolean {
  const text = context.state.sliceDoc(0, context.pos).replace(/--.*\n/g, '').replace(/'(?:[^'\\]|\\.)*'/gs, '');
  return text.includes("'") || /--[^\n]*$/.test(text);
}
