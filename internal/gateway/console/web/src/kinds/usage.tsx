// Usage: bills of a month with how they grew from the month before, a customer's days, and the diffs behind a bill.
import type {JSX} from 'preact';
import {useMemo} from 'preact/hooks';
import {go} from '../address';
import type {Topic, Usage as Answered, UsageDiff, UsageDiffs} from '../api';
import {get, topicPath} from '../client';
import {useLoad} from '../load';
import {Empty, Problem} from '../notice';
import {usePaged} from '../paged';
import {Text} from '../shown';
import {texts} from '../texts';
import {longTime, number} from '../time';
import {growth, monthRange, monthsUntil, percent, short} from './amount';
import {Choice, More, OfKind} from './controls';
import {Days} from './days';
import {Table} from './list';

type Bill = Answered['bills'][number];
type Row = {name: string; of: Record<string, string>; bill?: Bill; now: number; before: number};
const maxMonths = 60; // that may be chosen
const maxDiffs = 2000; // that the list holds
const groups = ['customer', 'space', 'provider', 'space,customer', 'provider,customer'] as const;
const measures = ['integral', 'sum', 'count'] as const;
const orders = ['by', 'share', 'now', 'name'] as const;

export function Usage({topics, query}: {topics: Topic[]; query: Record<string, string>}): JSX.Element {
  const now = useMemo(() => Date.now(), []);
  const months = monthsUntil(now, maxMonths);
  const asked = query['month'] ?? '';
  const month = /^\d{4}-(0[1-9]|1[0-2])$/.test(asked) && asked < months[0]! ? asked : months[0]!;
  if (!months.includes(month)) months.push(month);
  const group = groups.find((g) => g === query['group']) ?? 'customer';
  const measure = measures.find((m) => m === query['measure']) ?? 'integral';
  const range = monthRange(month, now);
  const own = topics.filter((t) => t.kind === 'meter');
  const topic = own.find((t) => t.name === query['topic']) ?? own[0];
  const meters = useLoad([topic?.name, month].join('\0'), topic && ((signal) => get<Answered>(topicPath(topic.name, 'usage'), {from: range.before.from, to: range.to, group_by: 'meter', measure: 'count'}, signal).then((u) => u.bills.map((b) => b.meter ?? '').sort())));
  const meter = (query['meter'] || meters.value?.[0]) ?? '';
  const controls = (
    <>
      <Choice label={texts.usage.month} value={month} of={months.map((m) => [m, m] as const)} set={(m) => go({query: {month: m}})} />
      <Choice label={texts.usage.meter} value={meter} of={[...new Set([...(meters.value ?? []), meter])].filter(Boolean).map((m) => [m, m] as const)} set={(m) => go({query: {meter: m, ...nobody}})} />
      <Choice label={texts.usage.group} value={group} of={groups.map((g) => [g, texts.usage.groups[g]!] as const)} set={(g) => go({query: {group: g, ...nobody}})} />
      <Choice label={texts.usage.measure} value={measure} of={measures.map((m) => [m, texts.usage.measures[m]!] as const)} set={(m) => go({query: {measure: m}})} />
    </>
  );
  return (
    <OfKind topics={topics} kind="meter" asked={query['topic']} controls={controls}>
      {(t) => (meters.error ? <Problem error={meters.error} again={meters.again} />
        : meters.value && !meter ? <Empty title={texts.usage.none} hint={texts.usage.noneHint(t.name)} />
        : meter ? <Bills key={[t.name, month, meter, group, measure].join('\0')} topic={t.name} meter={meter} group={group} measure={measure} range={range} query={query} />
        : <div class="loading" role="status">{texts.loading}</div>)}
    </OfKind>
  );
}

const nobody = {customer: '', space: '', provider: '', open: ''};

type Props = {topic: string; meter: string; group: string; measure: string; range: ReturnType<typeof monthRange>; query: Record<string, string>};

function Bills({topic, meter, group, measure, range, query}: Props): JSX.Element {
  const ask = (of: {from: string; to: string}) => (signal: AbortSignal) => get<Answered>(topicPath(topic, 'usage'), {...of, meter, measure, group_by: group}, signal);
  const bills = useLoad('', ask({from: range.from, to: range.to}));
  const before = useLoad('', range.before.to > range.before.from ? ask(range.before) : undefined);
  const order = orders.find((o) => o === query['order']) ?? 'by';
  // The average size is comparable between months of different lengths; what was added up or counted is as it is.
  const amount = (b: Bill | undefined) => Number((measure === 'integral' ? b?.average : b?.usage) ?? 0);
  const compared = !!bills.value && (!!before.value || range.before.to <= range.before.from);
  const rows = useMemo(() => {
    if (!compared) return [];
    const all = new Map<string, Row>();
    const put = (b: Bill, now: boolean) => {
      const of = Object.fromEntries(group.split(',').map((g) => [g, b[g as 'customer'] ?? '']));
      const key = Object.values(of).join('\0');
      const row = all.get(key) ?? {name: Object.values(of).map((v) => v || texts.facets.empty).join(' / '), of, now: 0, before: 0};
      all.set(key, {...row, ...(now ? {bill: b, now: amount(b)} : {before: amount(b)})});
    };
    before.value?.bills.forEach((b) => put(b, false));
    bills.value?.bills.forEach((b) => put(b, true));
    const grew = (r: Row) => growth(r.before, r.now);
    const weight: Record<string, (r: Row) => number> = {by: (r) => grew(r).by, share: (r) => grew(r).share ?? (r.now > 0 ? Infinity : -Infinity), now: (r) => r.now};
    return [...all.values()].sort((a, b) => (order === 'name' ? 0 : weight[order]!(b) - weight[order]!(a)) || (a.name < b.name ? -1 : 1));
  }, [bills.value, before.value, order]);
  const most = Math.max(...rows.map((r) => Math.abs(r.now - r.before)), 0);
  const sorted = (by: (typeof orders)[number]) => ({on: order === by, click: () => go({query: {order: by}}, true)});
  const open = rows.find((r) => query['open'] === '1' && Object.entries(r.of).every(([k, v]) => (query[k] ?? '') === v));
  const added = bills.value?.bills.some((b) => b.anomaly);
  const sum = rows.reduce((n, r) => ({now: n.now + r.now, before: n.before + r.before}), {now: 0, before: 0});
  if (bills.error ?? before.error) return <Problem error={(bills.error ?? before.error)!} again={() => { bills.again(); before.again(); }} />;
  return (
    <>
      <section class="results" aria-label={texts.usage.name}>
        <div class="list-head">
          <span class="found">{compared && texts.usage.total(short(sum.now), sum.before > 0 ? percent(growth(sum.before, sum.now).share!) : '')}</span>
          <span class="faint">{texts.usage.compared(range.before.from.slice(0, 10), range.before.to.slice(0, 16).replace('T', ' '))}</span>
          {added && <span class="warned">{texts.usage.anomaly}</span>}
          {!!bills.value?.contradictions && <span class="warned">{texts.usage.contradictions(number(bills.value.contradictions))}</span>}
          {!!bills.value?.too_late && <span class="warned">{texts.usage.tooLate(number(bills.value.too_late.diffs))}</span>}
        </div>
        {!compared ? <div class="loading" role="status">{texts.loading}</div>
          : !rows.length ? <Empty title={texts.usage.none} hint={texts.usage.noneHint(topic)} />
          : <Table<Row> label={texts.usage.name} rows={rows} keyOf={(r) => r.name} open={open?.name} choose={(r) => go({query: {...nobody, ...(r ? {...r.of, open: '1'} : {})}})}
            columns={[
              {name: texts.usage.groups[group]!, grow: true, order: sorted('name'), cell: (r) => <Text text={r.name} line />},
              {name: texts.usage.before, right: true, narrow: false, cell: (r) => <span class="soft" title={String(r.before)}>{short(r.before)}</span>},
              {name: measure === 'integral' ? texts.usage.average : texts.usage.measures[measure]!, right: true, order: sorted('now'), cell: (r) => <span title={measure === 'integral' ? r.bill?.average : r.bill?.usage}>{short(r.now)}</span>},
              {name: texts.usage.growth, right: true, order: sorted('by'), cell: (r) => <Grown row={r} most={most} />},
              {name: texts.usage.share, right: true, order: sorted('share'), cell: (r) => share(r)},
              {name: texts.usage.size, right: true, narrow: false, cell: (r) => <span title={r.bill?.size_end} class={r.bill?.anomaly ? 'bad' : ''}>{short(Number(r.bill?.size_end ?? 0))}</span>},
              {name: texts.usage.causes, right: true, narrow: false, title: texts.usage.causesHint, cell: (r) => number(r.bill?.causes ?? 0)},
            ]} />}
      </section>
      {open && <One key={open.name} row={open} topic={topic} meter={meter} measure={measure} range={range} />}
    </>
  );
}

const share = (r: Row) => {
  const by = growth(r.before, r.now);
  return by.share === undefined ? <span class="soft">{r.now > 0 ? texts.usage.fresh : '\u2013'}</span> : <span class={by.share < 0 ? 'soft' : ''}>{percent(by.share)}</span>;
};

/** Grown is how much, with a bar as long as that. */
function Grown({row, most}: {row: Row; most: number}): JSX.Element {
  const by = growth(row.before, row.now).by;
  return (
    <span class="grown">
      <span class="bar" aria-hidden="true"><i class={by < 0 ? 'less' : ''} style={{width: `${most ? Math.abs(by / most) * 100 : 0}%`}} /></span>
      <span class="nums">{by > 0 ? '+' : ''}{short(by)}</span>
    </span>
  );
}

/** One is a bill by days, and the diffs behind it. */
function One({row, topic, meter, measure, range}: {row: Row; topic: string; meter: string; measure: string; range: Props['range']}): JSX.Element {
  // The parts of a group that are empty cannot be asked for alone.
  const of = Object.fromEntries(Object.entries(row.of).filter(([, v]) => v));
  const days = useLoad('', (signal) => get<Answered>(topicPath(topic, 'usage'), {...of, meter, measure, from: range.before.from, to: range.to, group_by: 'day'}, signal));
  const diffs = usePaged<UsageDiff>('', maxDiffs, (cursor, signal) => get<UsageDiffs>(topicPath(topic, 'usage/diffs'), {...of, meter, measure, from: range.from, to: range.to, limit: 100, cursor}, signal).then((d) => ({rows: d.diffs, cursor: d.cursor})));
  const b = row.bill;
  const amounts: [string, string, string][] = b ? [
    [texts.usage.sizeStart, short(Number(b.size_start)), b.size_start], [texts.usage.size, short(Number(b.size_end)), b.size_end],
    ...(b.average ? [[texts.usage.average, short(Number(b.average)), b.average] as [string, string, string]] : []),
    [measure === 'integral' ? texts.usage.unitDays : texts.usage.measures[measure]!, short(measure === 'integral' ? Number(b.usage) / 86400e3 : Number(b.usage)), b.usage],
    [texts.usage.causes, number(b.causes), ''], [texts.usage.repeats, number(b.repeats), ''],
  ] : [];
  return (
    <aside class="drawer broad" aria-label={texts.usage.one}>
      <header>
        <b><Text text={row.name} line /></b> <span class="faint"><Text text={meter} line /></span>
        <span class="row end"><button class="ghost" aria-label={texts.close} onClick={() => go({query: nobody})}>{'\u2715'}</button></span>
      </header>
      <div class="drawer-body">
        <dl class="figures small">{amounts.map(([name, value, exact]) => <div key={name} title={exact}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
        {days.error ? <Problem error={days.error} again={days.again} /> : <Days bills={days.value?.bills ?? []} begin={range.from} amount={(d) => Number((measure === 'integral' ? d.average : d.usage) ?? 0)} />}
        <h3>{texts.usage.diffs}</h3>
        {diffs.error && !diffs.rows.length ? <Problem error={diffs.error} again={diffs.again} /> : (
          <div class="scrolled" tabIndex={0}>
            <table aria-label={texts.usage.diffs}>
              <thead><tr><th>{texts.usage.time}</th><th class="n">{texts.usage.delta}</th><th>{texts.usage.cause}</th><th>{texts.usage.space}</th></tr></thead>
              <tbody>{diffs.rows.map((d) => <tr key={d.id}><td class="nums">{longTime(Date.parse(d.time))}</td><td class="n">{grouped(d.delta)}</td><td><Text text={d.cause} line /></td><td><Text text={d.space} line /></td></tr>)}</tbody>
            </table>
            <More more={diffs.more} busy={diffs.busy} end={texts.usage.allDiffs(number(diffs.rows.length))} />
          </div>
        )}
      </div>
    </aside>
  );
}

/** grouped is a whole number of any size with its digits in threes. */
const grouped = (text: string) => text.replace(/^-/, '\u2212').replace(/\B(?=(\d{3})+$)/g, ',');
