// What scenarios of the page share: a browser, events sent as a client sends them, and the report, a line of JSON for each
// scenario with why it failed if it did.
import assert from 'node:assert/strict'
import http from 'node:http'
import {createRequire} from 'node:module'
import {join} from 'node:path'

export const told = JSON.parse(process.argv[2])
const {chromium} = createRequire(join(told.packages, 'package.json'))('playwright-core')
const browser = await chromium.launch({executablePath: told.chromium, args: ['--no-sandbox']})
export const patience = 180_000 // of a locator and of a condition, on a machine that is busy
const asked = []
const wrong = []
let operations // of the API, once an Almanac is there

/** declared are the operations of openapi.yaml: a method and the form of a path. */
async function declared() {
  const all = []
  let path
  for (const line of (await (await fetch(told.base + '/openapi.yaml')).text()).split('\n')) {
    if (/^\w/.test(line)) path = undefined // paths are one part of it
    path = /^ {4}(\/\S*):$/.exec(line)?.[1] ?? path
    const method = /^ {8}(get|post|put|delete|patch):$/.exec(line)?.[1]
    if (path && method) all.push([method.toUpperCase(), new RegExp('^' + path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+') + '$')])
  }
  return all
}

// What is no operation of the API: the page's own files, whether Almanac is there, and what Prometheus defines.
const others = [/^\/(console(\/.*)?)?$/, /^\/(healthz|readyz|version)$/, /^(\/t\/[^/]+)?\/api\/v1\/query_range$/]

const isPublic = ([, to, method]) => {
  const path = new URL(to).pathname.replace(/^\/logs\//, '/') // below a path prefix too
  return others.some((form) => method === 'GET' && form.test(path)) || operations.some(([m, form]) => m === method && form.test(path))
}

export async function open(address, options = {}) {
  operations ??= await declared().catch(() => undefined) // it may be stopped
  const context = await browser.newContext({viewport: {width: 1440, height: 860}, ...options})
  context.setDefaultTimeout(patience)
  const page = await context.newPage()
  page.on('request', (r) => asked.push([new URL(page.url() === 'about:blank' ? r.url() : page.url()).origin, r.url(), r.method()]))
  page.on('pageerror', (e) => wrong.push('a script failed: ' + e.message))
  // An answer that is no success is on the console too; the page tells what it means.
  page.on('console', (m) => { if (m.type() === 'error' && !/^Failed to load resource/.test(m.text())) wrong.push('on the console: ' + m.text()) })
  await page.addInitScript(() => document.addEventListener('securitypolicyviolation', (e) => console.error('against the policy: ' + e.violatedDirective + ' ' + e.blockedURI)))
  await page.goto(address)
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))) // it listens once it was drawn
  return page
}

export const at = (fragment, base = told.base) => `${base}/console/#/${fragment}`

export async function call(method, path, type, body) {
  const answer = await fetch(told.base + path, {method, headers: {'Content-Type': type, Authorization: 'Bearer ' + told.token}, body})
  const text = await answer.text()
  assert.ok(answer.ok, text)
  return text
}

/** inSQL waits until what an answer to ?ack=stored says is not stored yet is: the gateway waits ten seconds for it, and no longer. */
export async function inSQL(answer, topic) {
  for (const end = Date.now() + patience; answer?.stored === false; await new Promise((next) => setTimeout(next, 250))) {
    const {topics, away} = JSON.parse(await call('GET', '/v1/lag?topic=' + topic, 'application/json'))
    if (!away?.length && topics.every((t) => t.unrouted === 0 && t.unstored === 0)) return
    assert.ok(Date.now() < end, topic + ' is not stored')
  }
}

export async function send(events, topic = 'app') {
  const text = await call('POST', `/v1/topics/${topic}/events?ack=stored`, 'application/x-ndjson', events.map((e) => JSON.stringify(e)).join('\n'))
  await inSQL(JSON.parse(text), topic)
  return text
}

/** between is a proxy before Almanac, whose connections can be cut, or say nothing. */
export async function between() {
  let open = true
  let hangs = false
  const answers = new Map()
  const proxy = http.createServer((q, s) => {
    if (!open) return s.destroy()
    if (hangs) return
    const to = http.request(told.base + q.url, {method: q.method, headers: q.headers}, (a) => { s.writeHead(a.statusCode, a.headers); a.pipe(s); answers.set(s, a) })
    to.on('error', () => s.destroy())
    s.on('close', () => { answers.delete(s); to.destroy() })
    q.pipe(to)
  })
  await new Promise((done) => proxy.listen(0, '127.0.0.1', done))
  return {
    base: `http://127.0.0.1:${proxy.address().port}`,
    cut() { open = false; proxy.closeAllConnections() },
    mend() { open = true; hangs = false },
    /** hang has no request answered any more. */
    hang() { hangs = true },
    /** silence has the answers that are under way say no more; new ones do. */
    silence() { for (const [s, a] of answers) a.unpipe(s) },
    close() { proxy.close(); proxy.closeAllConnections() },
  }
}

/** until waits for a condition that no locator says. */
export async function until(page, what, f) {
  for (const end = Date.now() + patience; ;) {
    const value = await f()
    if (value) return value
    assert.ok(Date.now() < end, `${what}; the page has ${(await page.locator('main').innerText()).slice(0, 600)}`)
    await page.evaluate(() => new Promise(requestAnimationFrame))
  }
}

/** openAt opens a page with the local token, and waits until it is drawn. */
export async function openAt(address, options) {
  const page = await open(`${told.base}/console/#token=${told.token}`, options)
  await until(page, 'the token is taken', async () => !page.url().includes('alm_'))
  await page.evaluate((to) => (location.hash = '#/' + to), address)
  await settled(page)
  return page
}

/** settled waits until all that the page asks for once has come and is drawn. */
export async function settled(page) {
  await until(page, 'nothing loads', () => page.evaluate(async () => {
    const quiet = () => document.querySelector('main *') && !document.querySelector('.loading, .busy') && !/^Loading$/m.test(document.querySelector('main').innerText)
    for (let i = 0; i < 4; i++) {
      if (!quiet()) return false
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60))) // several frames: an answer may begin another request
    }
    return true
  }))
}

/** measured is where an element is, once two measurements in a row agree: until the page is laid out it moves. */
export async function measured(page, of) {
  let was
  return until(page, 'a place that stays', async () => {
    const box = await of.boundingBox()
    const same = box && JSON.stringify(box) === was
    was = JSON.stringify(box)
    return same && box
  })
}

/** offered waits until a picker of fields has what it offers: fields that do not come are asked for with the next focus. */
export const offered = (page, picker) => until(page, 'the fields', async () => {
  await picker.blur()
  await picker.focus()
  for (let n = 0; n < 50 && (await picker.locator('option').count()) < 2; n++) await page.waitForTimeout(100)
  return (await picker.locator('option').count()) > 1
})

export const list = (page) => page.getByRole('grid', {name: 'Events'})
export const rows = (page) => list(page).getByRole('row').and(page.locator('[aria-rowindex]')) // not its foot
export const found = (page, text) => page.getByText(text, {exact: true}).waitFor()
export const filter = (page) => page.getByRole('combobox', {name: 'Filter'})
export const statement = (page) => page.getByRole('textbox', {name: 'Statement'})

/** write makes a text the statement, by keys: fill() lets the browser style what it replaces, which the policy reports. */
export async function write(page, sql) {
  await statement(page).click()
  await page.keyboard.press('Control+a')
  await page.keyboard.press('Delete')
  await page.keyboard.insertText(sql)
  await page.keyboard.press('Escape') // no completion is meant
}

/** run carries scenarios out, one after the other, and then looks at what all of them asked for. */
export async function run(scenarios) {
  const last = {
    async 'what was asked'() {
      assert.deepEqual(asked.filter(([page, to]) => new URL(to).origin !== page), [])
      assert.ok(operations?.length > 50, 'openapi.yaml declares the API')
      assert.deepEqual(asked.filter((one) => !isPublic(one)), [])
      assert.deepEqual([...new Set(wrong)], [])
      assert.ok(asked.length > Object.keys(scenarios).length)
    },
  }
  for (const [scenario, does] of Object.entries({...scenarios, ...last})) {
    let failed = ''
    try {
      await does()
    } catch (e) {
      failed = String(e.stack ?? e).slice(0, 3000)
    }
    for (const context of browser.contexts()) await context.close()
    console.log(JSON.stringify({scenario, failed}))
  }
  await browser.close()
  process.exit() // a server that a scenario left when it failed keeps no script alive
}
