// An Almanac that is stopped and started again, one whose engine alone is down, and one whose NATS alone is out of reach, before a
// page that is not loaded again. The script starts and stops Almanac itself, at one address.
import assert from 'node:assert/strict'
import {spawn} from 'node:child_process'
import {existsSync} from 'node:fs'
import {readdir, readFile} from 'node:fs/promises'
import net from 'node:net'
import {join} from 'node:path'
import {createInterface} from 'node:readline'
import {declare} from './example.mjs'
import {at, open, rows, run, send, told, until} from './page.mjs'

let up

/** start starts Almanac, and returns once it is ready. */
async function start(...flags) {
  up = spawn(told.program, ['up', '--ports', 'auto', '--http', told.http, '--log-format', 'json', '--data', told.data, ...flags], {cwd: told.cwd, stdio: ['ignore', 'ignore', 'pipe']})
  up.ended = new Promise((done) => up.once('exit', done))
  const said = []
  const ready = new Promise((done) => createInterface({input: up.stderr}).on('line', (line) => { said.push(line); if (line.includes('"message":"ready"')) done(true) }))
  assert.ok(await Promise.race([ready, up.ended.then(() => false)]), 'almanac up ended:\n' + said.join('\n'))
  told.token = (await readFile(join(told.data, 'local-token'), 'utf8')).trim()
}

async function stop() {
  up.kill('SIGTERM')
  await up.ended
}
process.on('exit', () => up?.kill('SIGKILL'))

/** engine returns the processes of the engine. */
async function engine() {
  const threads = await readdir(`/proc/${up.pid}/task`)
  const children = (await Promise.all(threads.map((t) => readFile(`/proc/${up.pid}/task/${t}/children`, 'utf8').catch(() => '')))).join(' ').split(' ').filter(Boolean)
  const named = await Promise.all(children.map(async (pid) => [pid, await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')]))
  return named.filter(([, line]) => line.includes('__engine')).map(([pid]) => Number(pid))
}

/** engineDown kills the engine, and again whenever it was started, until up is called. */
function engineDown() {
  let down = true
  const killing = (async () => {
    while (down) {
      for (const pid of await engine()) {
        try { process.kill(pid, 'SIGKILL') } catch { /* it is gone */ }
      }
      await new Promise((next) => setTimeout(next, 20))
    }
  })()
  return {async up() { down = false; await killing }}
}

/** cable is a way to a server that can be cut. */
async function cable(to) {
  const {hostname, port} = new URL(to)
  const ends = new Set()
  let whole = true
  const near = net.createServer((a) => {
    if (!whole) return a.destroy()
    const b = net.connect(Number(port), hostname)
    for (const [one, other] of [[a, b], [b, a]]) {
      ends.add(one)
      one.on('error', () => other.destroy()).on('close', () => { ends.delete(one); other.destroy() })
      one.pipe(other)
    }
  })
  await new Promise((done) => near.listen(0, '127.0.0.1', done))
  return {
    near: `nats://127.0.0.1:${near.address().port}`,
    cut() { whole = false; for (const one of ends) one.destroy() },
    mend() { whole = true },
    close() { near.close(); for (const one of ends) one.destroy() },
  }
}

const banner = (page) => page.getByRole('alert').filter({hasText: 'Almanac does not answer.'})
const search = (page) => page.getByRole('button', {name: 'Search', exact: true})

const scenarios = {
  async 'stopped: a banner within three seconds, and back without a reload'() {
    await start()
    await declare('away', 'log')
    await send([{service: 'shop', message: 'before it was stopped'}], 'away')
    const page = await open('about:blank')
    await page.clock.install()
    await page.goto(at('search?topic=away&from=all'))
    await page.getByText('before it was stopped').first().waitFor()
    await page.evaluate(() => (globalThis.loadedOnce = true))
    await banner(page).waitFor({state: 'detached'})
    await page.clock.pauseAt(Date.now() + 3600_000) // from here the page's own clock goes as it is told; it asks once more now
    await stop()
    await page.clock.runFor(3000)
    await banner(page).waitFor() // its clock stands at three seconds
    await start()
    await page.clock.resume()
    await banner(page).waitFor({state: 'detached'})
    await send([{service: 'shop', message: 'after it was started'}], 'away')
    await until(page, 'what came since', async () => {
      await search(page).click()
      return page.getByText('after it was started').first().isVisible()
    })
    assert.equal(await page.evaluate(() => globalThis.loadedOnce), true)
  },
  async 'the engine alone down: search says so, Health and tail go on'() {
    const tail = await open(at('tail?topic=away'))
    await tail.getByText('Connected. Waiting for events.').waitFor()
    const page = await open(at('search?topic=away&from=all'))
    await until(page, 'an event', async () => (await rows(page).count()) > 0)
    const down = engineDown()
    try {
      await until(page, 'that ClickHouse is away', async () => {
        await search(page).click()
        return page.locator('main').getByText(/ClickHouse does not answer/).first().isVisible()
      })
      await page.getByRole('link', {name: 'Health'}).click()
      await page.getByText('Not ready', {exact: true}).waitFor()
      await page.getByText(/^no answer of ClickHouse/).first().waitFor()
      await page.getByText(/^ClickHouse is away since /).first().waitFor()
      await page.getByRole('cell', {name: 'EVENTS', exact: true}).waitFor()
      await fetch(`${told.base}/v1/topics/away/events`, {method: 'POST', headers: {'Content-Type': 'application/x-ndjson', Authorization: 'Bearer ' + told.token}, body: '{"message":"while the engine is down"}'}).then((a) => assert.ok(a.ok))
      await tail.getByRole('grid', {name: 'Live events'}).getByText('while the engine is down').waitFor()
      await tail.getByText('live', {exact: true}).waitFor()
      await banner(page).waitFor({state: 'detached'}) // Almanac itself answers
    } finally {
      await down.up()
    }
    await page.getByText('Ready', {exact: true}).waitFor()
    await page.goBack()
    await until(page, 'the events, and what came meanwhile', async () => {
      await search(page).click()
      return page.getByText('while the engine is down').first().isVisible()
    })
    await stop()
  },
  async 'NATS alone away: search says so, Health goes on'() {
    const way = await cable(told.nats)
    told.data += '-nats'
    await start('--nats', way.near, '--events-bytes', '1GiB', '--shards-bytes', '1GiB')
    await declare('apart', 'log')
    await send([{service: 'shop', message: 'before NATS was away'}], 'apart')
    const page = await open(at('search?topic=apart&from=all'))
    await page.getByText('before NATS was away').first().waitFor()
    const health = await open(at('health'))
    await health.getByText('Ready', {exact: true}).waitFor()
    await health.getByRole('cell', {name: 'EVENTS', exact: true}).waitFor()
    way.cut()
    await until(page, 'that NATS is away', async () => {
      await search(page).click()
      return page.locator('main').getByText(/NATS did not answer completely|NATS does not answer|connection to NATS/).first().isVisible()
    })
    await health.getByText('Not ready', {exact: true}).waitFor()
    await health.getByText(/^NATS is away since /).first().waitFor() // a check and a file system may both say so
    await health.getByRole('cell', {name: 'EVENTS', exact: true}).waitFor() // what was read before
    await health.getByRole('table', {name: 'Disks'}).getByText('ClickHouse').waitFor()
    await health.getByText(/^This was read .* ago: NATS is away\.$/).waitFor()
    await banner(health).waitFor({state: 'detached'}) // Almanac itself answers
    way.mend()
    await health.getByText('Ready', {exact: true}).waitFor()
    await until(page, 'the events', async () => {
      await search(page).click()
      return page.getByText('before NATS was away').first().isVisible()
    })
    await until(page, 'events are taken', () => send([{service: 'shop', message: 'after NATS was away'}], 'apart').then(() => true, () => false))
    await until(page, 'what came since', async () => {
      await search(page).click()
      return page.getByText('after NATS was away').first().isVisible()
    })
    await stop()
    way.close()
  },
}

await run(existsSync('/proc/self/task') ? scenarios : {async 'skipped: no /proc is here'() { await open('about:blank') }})
