// What a topic has, in words.
import type {Topic} from '../api';
import {texts} from '../texts';
import {bytes, number, seconds} from '../time';

/** rulesOf are the names and values of what a topic has, always the same names in the same order; a value may be empty. */
export function rulesOf(t: Topic): [string, string][] {
  const w = texts.topicsPage;
  return [
    [w.kept, t.keep_days > 0 ? w.days(t.keep_days) : w.forever],
    [w.anonymised, t.anonymise?.after_days ? `${w.after(t.anonymise.after_days)}: ${(t.anonymise.fields ?? []).join(', ') || w.usual}` : ''],
    [w.cold, t.cold_after_days ? w.after(t.cold_after_days) : ''],
    [w.privacy, (t.pii ?? []).map((p) => `${p.field}: ${p.rule}${p.grid ? ` ${p.grid}` : ''}`).join(', ')],
    [w.lanes, `${t.lanes}, ${w.by} ${t.lane_by.join(', ') || w.producer}`],
    [w.rotate, [t.rotate.rows > 0 && `${number(t.rotate.rows)} ${texts.proof.rows}`, t.rotate.bytes > 0 && bytes(t.rotate.bytes), t.rotate.span > 0 && seconds(t.rotate.span / 1e9)].filter(Boolean).join(w.or)],
    [w.once, (t.once_by ?? []).join(', ')],
    [w.fresh, t.sql_fresh ? seconds(t.sql_fresh / 1e9) : ''],
    [w.ownFields, (t.fields ?? []).map((f) => f.name).join(', ')],
    [w.version, String(t.version)],
  ];
}
