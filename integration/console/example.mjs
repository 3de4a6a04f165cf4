// Example data of each kind of topic, sent by the API as a client sends it: a shop's customers, what they store, the
// mails that are due, who changed which role. It is the same each time but for the times, which end now.
import {execFile} from 'node:child_process'
import {promisify} from 'node:util'
import {inSQL, told} from './page.mjs'

const minute = 60_000
const day = 86400_000
export const iso = (t) => new Date(t).toISOString()

export async function ask(method, path, body, type = 'application/json') {
  const answer = await fetch(told.base + path, {method, headers: {'Content-Type': type, Authorization: 'Bearer ' + told.token}, body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body)})
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return text ? JSON.parse(text) : undefined
}

export async function lines(topic, events) {
  await inSQL(await ask('POST', `/v1/topics/${topic}/events?ack=stored`, events.map((e) => JSON.stringify(e)).join('\n'), 'application/x-ndjson'), topic)
}

/** declare makes a topic of a kind. */
export const declare = (topic, kind) => promisify(execFile)(told.program, ['topics', 'apply', topic, '--kind', kind], {env: {...process.env, ALMANAC_DATA: told.data}})

export async function meters(topic, now = Date.now()) {
  const diffs = []
  for (let d = 75; d >= 1; d--) {
    for (const [i, c] of ['acme', 'borealis', 'cumulus', 'dogger', 'ember', 'fjord'].entries()) {
      const of = {provider: i % 2 ? 'eu-north' : 'eu-west', space: c + '-main', user_id: c, ts: iso(now - d * day + i * minute)}
      diffs.push({...of, type: 'bytes', cause: `${c}-${d}`, delta: (c === 'dogger' && d < 35 ? 2600 : c === 'fjord' ? -20 + (d > 70 ? 900 : 0) : 100 + 20 * i) * 1_000_000})
      if (d % 5 === 0) diffs.push({...of, type: 'seats', cause: `${c}-seat-${d}`, delta: 1 + (i % 2)})
    }
  }
  await lines(topic, diffs)
}

export async function documents(topic) {
  const put = (id, path, body) => ask('PUT', `/v1/documents/${topic}/${id}${path ? '?path=' + path : ''}`, body)
  const plans = ['small', 'large', 'trial']
  for (let i = 1; i <= 24; i++) {
    await put(`c-${String(i).padStart(3, '0')}`, ['se/uppsala', 'se/lund', 'no/oslo', 'at/vienna'][i % 4], {name: `Customer ${i}`, plan: plans[i % 3], seats: i * 3, contact: {mail: `ops@c${i}.example`, phone: null}, limits: {requests_per_second: 50, storage_gb: 10 * i}})
  }
  await put('c-024', '', {name: 'Customer 24', plan: 'large', seats: 90, contact: {mail: 'ops@c24.example', phone: null}, limits: {requests_per_second: 200, storage_gb: 240}, tags: ['key account']})
  await put('c-024', '', {name: 'Customer 24', plan: 'large', seats: 96, contact: {mail: 'it@c24.example', phone: '+43 1 555'}, limits: {requests_per_second: 200, storage_gb: 240}, tags: ['key account', '<b>bold</b> \u202Ename']})
  await ask('DELETE', `/v1/documents/${topic}/c-003`)
}

export async function timers(topic, now = Date.now()) {
  const of = topic === 'timers' ? '' : '?topic=' + topic
  await ask('PUT', `/v1/timers/mails/config${of}`, {slots: 16})
  await ask('PUT', `/v1/timers/invoices/config${of}`, {slots: 16, paused: true})
  await ask('PUT', `/v1/timers/reminders/config${of}`, {slots: 16})
  for (let i = 0; i < 30; i++) await ask('POST', `/v1/timers/mails${of}`, {replace: true, id: `welcome-${i}`, execute_at: iso(now + (i + 1) * 17 * minute), callback_url: 'https://mail.example/send', payload: {user: `u-${i}`, template: 'welcome'}})
  for (let i = 0; i < 4; i++) await ask('POST', `/v1/timers/invoices${of}`, {replace: true, id: `inv-2026-${100 + i}`, execute_at: iso(Date.now() + 1000), callback_url: 'https://billing.example/close', payload: {invoice: 100 + i}})
  // Loopback is not called, so this one fails.
  await ask('POST', `/v1/timers/reminders${of}`, {replace: true, id: 'seat-42', execute_at: iso(Date.now() + 500), callback_url: 'http://127.0.0.1:9/remind', payload: {seat: 42, text: '<i>soon</i>'}})
  for (let i = 0; i < 6; i++) await ask('POST', `/v1/timers/reminders${of}`, {replace: true, id: `seat-${i}`, execute_at: iso(now + (i + 2) * 60 * minute), callback_url: 'https://mail.example/remind', payload: {seat: i}})
}

export async function trails(topic, now = Date.now()) {
  const events = []
  const change = (i, at, of, before, after, state = 'committed') => {
    const e = {type: 'change', request_id: `req-${i}`, scope: 'projects/shop', service: 'iam', category: 'spec_update', ...of, before, after}
    events.push({...e, ts: iso(at), state: 'pre_committed'})
    if (state) events.push({...e, ts: iso(at + 40), state})
  }
  const role = {resource_type: 'role', resource: 'roles/billing-reader', method: 'UpdateRole'}
  const members = ['ana', 'boris']
  for (let i = 0; i < 8; i++) {
    const before = {name: 'billing-reader', members: [...members], permissions: ['bills.read'], ttl_days: 30}
    members.push('user-' + i)
    const after = {...before, members: [...members], ttl_days: i === 3 ? 90 : 30, note: i > 4 ? '<img src=x onerror=alert(1)>' : undefined}
    change(i, now - (9 - i) * 3600_000, {...role, user_id: i % 2 ? 'ana' : 'boris'}, before, after, i === 5 ? 'rolled_back' : 'committed')
  }
  change('k', now - 2 * day, {resource_type: 'key', resource: 'keys/export', method: 'CreateKey', user_id: 'cleo', category: 'creation'}, undefined, {id: 'keys/export', rights: ['read']})
  change('open', now - 3600_000, {resource_type: 'role', resource: 'roles/admin', method: 'UpdateRole', user_id: 'boris'}, {members: ['ana']}, {members: ['ana', 'boris']}, '')
  await lines(topic, events)
}

/** lot returns numbers from 0 below 1, the same each time. */
const lot = (seed) => () => ((seed = (seed * 16807) % 2147483647) - 1) / 2147483646

/** logs are two hours of a shop, of which some twenty minutes went wrong: its payments were refused. */
export async function logs(topic, now = Date.now()) {
  const next = lot(77)
  const one = (all) => all[Math.floor(next() * all.length)]
  const events = []
  for (let at = now - 120 * minute; at < now; at += 400 + next() * 4400) {
    const wrong = at > now - 55 * minute && at < now - 34 * minute
    const user = 'u-' + Math.floor(next() * 400)
    const trace = Math.floor(next() * 2 ** 48).toString(16).padStart(32, '4bf92f3577b34da6')
    const base = {ts: iso(at), user_id: user, trace_id: trace}
    const ms = Math.round(20 + 90 * next() * next() + (wrong ? 900 * next() : 0))
    switch (wrong && next() < 0.6 ? 'payment' : one(['checkout', 'catalog', 'catalog', 'catalog', 'auth', 'mail'])) {
      case 'payment':
        events.push(next() < 0.7 ? {...base, level: 'error', service: 'payment', type: 'charge', message: `card provider refused the connection: dial tcp 203.0.113.${Math.floor(next() * 20)}:443: i/o timeout`, attributes: {attempt: String(1 + Math.floor(next() * 3)), order: 'o-' + Math.floor(next() * 90000), provider: 'nordpay', duration_ms: String(ms)}}
          : {...base, level: 'warn', service: 'payment', type: 'retry', message: 'charge is tried again after 2 s', attributes: {provider: 'nordpay'}})
        break
      case 'checkout':
        events.push({...base, level: 'info', service: 'checkout', type: 'order', message: `order o-${Math.floor(next() * 90000)} placed, ${1 + Math.floor(next() * 6)} items, ${(5 + 200 * next()).toFixed(2)} EUR`, attributes: {cart: JSON.stringify({items: 2, coupon: null}), duration_ms: String(ms)}})
        break
      case 'auth':
        events.push(next() < 0.15 ? {...base, level: 'warn', service: 'auth', type: 'login', message: `wrong password for ${user}`, attributes: {ip: `198.51.100.${Math.floor(next() * 250)}`}} : {...base, level: 'info', service: 'auth', type: 'login', message: `${user} signed in`, attributes: {ip: `198.51.100.${Math.floor(next() * 250)}`}})
        break
      case 'mail':
        events.push({...base, level: 'debug', service: 'mail', type: 'queue', message: `queue holds ${Math.floor(40 * next())} mails`})
        break
      default:
        events.push({...base, level: 'info', service: 'catalog', type: 'request', message: `GET /products/${one(['kettles', 'lamps', 'chairs', 'rugs'])}?page=${1 + Math.floor(next() * 9)} 200 ${ms} ms`, attributes: {status: '200', duration_ms: String(ms)}})
    }
  }
  await lines(topic, events)
}

/** metrics are the load of three services over those hours. */
export async function metrics(topic, now = Date.now()) {
  const next = lot(5)
  const points = []
  for (let i = 120; i >= 0; i--) {
    for (const [k, service] of ['catalog', 'checkout', 'payment'].entries()) {
      const wrong = i < 55 && i > 34
      points.push({ts: iso(now - i * minute), type: 'latency_ms', service, value: Math.round(30 + 25 * k + 14 * Math.sin(i / 9 + k) + 9 * next() + (wrong && k ? 160 * k * next() : 0))})
    }
  }
  await lines(topic, points)
}
