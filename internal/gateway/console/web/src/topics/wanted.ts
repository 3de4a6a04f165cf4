// The topic that a form asks for.
import type {Topic, TopicRequest} from '../api';

/** wanted is a topic with what a form says. A text that is not a number is sent as it is: the server says what it lacks. */
export function wanted(t: Topic, form: FormData): TopicRequest {
  const text = (name: string) => String(form.get(name) ?? '').trim();
  const lines = (name: string) => text(name).split('\n').map((line) => line.trim()).filter(Boolean);
  const whole = (name: string, times = 1) => {
    const n = times > 1 ? Math.round(Number(text(name)) * times) : Number(text(name));
    return Number.isInteger(n) ? n : (text(name) as unknown as number);
  };
  const clear = text('clear').split(',').map((name) => name.trim()).filter(Boolean);
  const pii = lines('pii').map((line) => {
    const [field = '', rule = '', grid] = (/^(.*?)\s*:\s*(\S*)\s*(\S*)$/.exec(line) ?? ['', line]).slice(1);
    return {field, rule, ...(grid && {grid: (Number(grid) || grid) as number})};
  });
  const more = lines('fields').map((line) => {
    const [name = '', type = '', ...from] = line.split(':').map((part) => part.trim());
    return {name, type, ...(from.length && {from: from.join(':')})};
  });
  return {
    ...t,
    keep_days: whole('keep'),
    anonymise: {after_days: whole('after'), ...(clear.length && {fields: clear})},
    cold_after_days: whole('cold'),
    sql_fresh: whole('fresh', 1e9),
    rotate: {rows: whole('rows'), bytes: whole('bytes'), span: whole('span', 1e9)},
    pii: pii.length ? pii : undefined,
    fields: [...(t.fields ?? []), ...more],
  };
}
