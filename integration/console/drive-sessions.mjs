// Random sessions: whatever is clicked, dragged, typed and loaded again, the page shows the events that almanac query
// returns for the range and filter of its address. The seed is printed; ALMANAC_CONSOLE_SEED repeats it, and
// ALMANAC_CONSOLE_SESSIONS makes more of them.
import assert from 'node:assert/strict'
import {execFile} from 'node:child_process'
import {promisify} from 'node:util'
import {at, filter, list, measured, open, rows, run, send, settled, told, until} from './page.mjs'

const almanac = async (...args) => (await promisify(execFile)(told.program, [...args, '--data', told.data], {maxBuffer: 64 << 20})).stdout
const sessions = Number(process.env.ALMANAC_CONSOLE_SESSIONS || 1)
const seed = Number(process.env.ALMANAC_CONSOLE_SEED || Date.now() % 2 ** 31)
const steps = 30
const topic = 'sessions_' + Date.now().toString(36) // another each time, so that the script may run twice on one Almanac

/** random returns whole numbers below n, the same for a seed (mulberry32). */
function random(a) {
  return (n) => {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n)
  }
}

/** asked is what an address of the page says. */
function asked(address) {
  const query = Object.fromEntries(new URLSearchParams(address.split('?')[1] ?? ''))
  const flags = ['--limit', '1000', '-o', 'ndjson']
  if (query.from && query.from !== 'all') flags.push('--from', query.from)
  if (query.to) flags.push('--to', query.to)
  if (query.where) flags.push('--where', query.where)
  return flags
}

async function same(page, did) {
  let address, lines
  const what = {toString: () => `seed ${seed}, after ${did.join(', ')}: ${lines?.length} events of ${address}`}
  await until(page, what, async () => {
    if (page.url() !== address) { // what was done last shows in the address some frames later
      address = page.url()
      lines = (await almanac('query', topic, ...asked(address))).split('\n').filter(Boolean).map((l) => JSON.parse(l).message)
    }
    if (!lines.length) return page.getByText('No events match in this range.').isVisible()
    const text = await page.locator('.found').innerText().catch(() => '')
    if (!text.endsWith(` of ${lines.length} events`)) return false
    const seen = await rows(page).evaluateAll((all) => all.map((r) => [Number(r.getAttribute('aria-rowindex')) - 1, r.querySelector('.message bdi')?.textContent]))
    return seen.length > 0 && seen.every(([i, message]) => lines[i] === message)
  })
}

const actions = {
  async only(page, below) { return clicked(page, page.getByRole('button', {name: /^Only /}), below) },
  async without(page, below) { return clicked(page, page.getByRole('button', {name: /^Without /}), below) },
  async type(page, below) {
    const where = ["level = 'error'", "service in ('shop', 'bank')", "user_id != 'u-3'", "message contains '7'", "level != 'info' OR service = 'mail'", 'attributes.n = 3'][below(6)]
    await filter(page).fill(where)
    await filter(page).press('Enter')
    return where
  },
  async clear(page) { await filter(page).fill(''); await filter(page).press('Enter'); return 'clear' },
  async brush(page, below) {
    const box = await measured(page, page.getByTitle('Drag over the bars to choose a range'))
    const [a, b] = [below(box.width - 60), 20 + below(200)]
    await page.mouse.move(box.x + a, box.y + 40)
    await page.mouse.down()
    await page.mouse.move(Math.min(box.x + a + b, box.x + box.width - 1), box.y + 40, {steps: 3})
    await page.mouse.up()
    return 'brush'
  },
  async all(page) {
    await page.getByRole('button', {name: /^Time range/}).click()
    await page.getByRole('dialog', {name: 'Time range'}).getByRole('button', {name: 'All time'}).click()
    return 'all time'
  },
  async older(page) { if (await list(page).count()) await list(page).evaluate((e) => e.scrollTo(0, e.scrollHeight)); return 'older' },
  async reload(page) { await page.reload(); return 'reload' },
}

/** clicked clicks one of those that are there, which may be none. */
async function clicked(page, all, below) {
  await settled(page) // facets of the search before may still go
  const n = await all.count()
  if (!n) return 'nothing'
  const one = all.nth(below(n))
  const name = await one.getAttribute('aria-label')
  await one.click({force: true})
  return name
}

async function session(n) {
  const below = random(seed + n)
  const page = await open(at(`search?topic=${topic}&from=all`))
  const did = []
  await same(page, did)
  for (let i = 0; i < steps; i++) {
    const names = Object.keys(actions)
    did.push(await actions[names[below(names.length)]](page, below))
    await same(page, did)
  }
}

const scenarios = {
  async 'what the sessions read'() {
    await almanac('topics', 'apply', topic)
    const begin = Date.now() - 7200_000
    await send(Array.from({length: 420}, (_, i) => ({ts: new Date(begin + i * 15_000).toISOString(), level: ['info', 'warn', 'error'][i % 7 % 3], service: ['shop', 'bank', 'mail'][i % 3], user_id: 'u-' + (i % 11), message: `step ${i}`, attributes: {n: String(i % 5)}})), topic)
    assert.equal((await almanac('query', topic, '--limit', '1000', '-o', 'ndjson')).split('\n').filter(Boolean).length, 420)
  },
}
for (let n = 0; n < sessions; n++) scenarios[`session ${n} of seed ${seed}`] = () => session(n)

await run(scenarios)
