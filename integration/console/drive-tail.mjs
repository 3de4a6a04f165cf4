// A tail over a network that is cut again and again while events come: it has each of them once, in their order.
import assert from 'node:assert/strict'
import {declare} from './example.mjs'
import {at, between, open, patience, run, send, until} from './page.mjs'

const topic = 'cut_' + Date.now().toString(36) // another each time, so that the script may run twice on one Almanac
const cuts = 4
const each = 60 // events before a cut, and as many while it lasts

const scenarios = {
  async 'a network that is cut, each event once'() {
    await declare(topic, 'log')
    const net = await between()
    const page = await open(at('tail?topic=' + topic, net.base))
    await page.getByText('Connected. Waiting for events.').waitFor()
    const live = page.getByRole('grid', {name: 'Live events'})
    let n = 0
    const some = () => send(Array.from({length: each}, () => ({user_id: 'u', message: 'event ' + n++})), topic)
    for (let i = 0; i < cuts; i++) {
      const sent = some() // the cut may be in the midst of what the page is told of these
      await until(page, 'the first of them', async () => Number(await live.getAttribute('aria-rowcount').catch(() => 0)) > 2 * i * each)
      net.cut()
      await sent
      await some()
      await page.getByText(/^connection lost; again in /).waitFor()
      net.mend()
      await until(page, `all ${n} events`, async () => Number(await live.getAttribute('aria-rowcount')) >= n)
    }
    const seen = []
    for (let from = 0; from < n; from += 20) {
      const height = await live.evaluate((e, to) => { e.scrollTo(0, to * 23); return e.scrollHeight }, from)
      assert.ok(height >= n * 23)
      seen.push(...(await until(page, 'rows from ' + from, async () => {
        const rows = await live.getByRole('row').evaluateAll((all) => all.map((r) => [Number(r.getAttribute('aria-rowindex')), r.querySelector('.message bdi').textContent]))
        return rows.some(([at]) => at === Math.min(from + 1, n)) && rows
      })))
    }
    const numbered = new Map(seen)
    assert.deepEqual([...numbered.keys()].sort((a, b) => a - b), Array.from({length: n}, (_, i) => i + 1))
    assert.deepEqual([...numbered.entries()].sort(([a], [b]) => a - b).map(([, text]) => text), Array.from({length: n}, (_, i) => 'event ' + i))
    net.close()
  },
  async 'a tail that is cut before its first event'() {
    await declare(topic + 'i', 'log')
    const net = await between()
    const page = await open(at(`tail?topic=${topic}i`, net.base))
    await page.getByText('Connected. Waiting for events.').waitFor()
    net.cut()
    await page.getByText(/^connection lost; again in /).waitFor()
    await send([{user_id: 'u', message: 'meanwhile'}], topic + 'i')
    net.mend()
    await page.getByRole('grid', {name: 'Live events'}).getByText('meanwhile').waitFor()
    net.close()
  },
  async 'a connection that says nothing, as after a sleep, is given up'() {
    await declare(topic + 's', 'log')
    const net = await between()
    const page = await open('about:blank')
    await page.clock.install()
    await page.goto(at(`tail?topic=${topic}s`, net.base))
    await page.getByText('Connected. Waiting for events.').waitFor()
    net.silence()
    await send([{user_id: 'u', message: 'in its sleep'}], topic + 's')
    await page.clock.fastForward(41_000) // its timers are due at once
    await page.getByRole('grid', {name: 'Live events'}).getByText('in its sleep').waitFor()
    assert.equal(await page.getByRole('grid', {name: 'Live events'}).getByRole('row').count(), 1)
    net.close()
  },
  async 'whether an event is stored, and a link to it'() {
    const page = await open(at(`tail?topic=${topic}s`))
    await page.getByText('Connected. Waiting for events.').waitFor()
    const looks = []
    page.on('request', (r) => { if (/\/events\/20/.test(r.url())) looks.push(r.url()) })
    // What it is told of the event's place is at first that of one on its way.
    let onItsWay = true
    await page.route(/\/events\/20/, async (route) => {
      const answer = await route.fetch()
      return route.fulfill({response: answer, json: {...await answer.json(), ...((onItsWay || looks.length < 3) && {pos: 0})}})
    })
    await send([{user_id: 'u', message: 'look at it'}], topic + 's')
    await page.getByRole('grid', {name: 'Live events'}).getByText('look at it').click()
    const drawer = page.getByRole('complementary', {name: 'Event'})
    await drawer.getByText('on its way: not in ClickHouse yet').waitFor()
    onItsWay = false
    await drawer.getByText('stored', {exact: true}).waitFor()
    assert.equal(await drawer.getByRole('button', {name: /^Show as a column/}).count(), 0)
    assert.ok(looks.length >= 3)
    await page.evaluate(() => Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => (globalThis.copied = text)}}))
    await drawer.getByRole('button', {name: 'Copy link'}).click()
    const other = await open(await until(page, 'what was copied', () => page.evaluate(() => globalThis.copied)))
    await other.getByRole('complementary', {name: 'Event'}).getByText('look at it').first().waitFor()
    await page.unrouteAll({behavior: 'ignoreErrors'}) // a look may be under way
  },
  async 'an event that is not stored is not looked for without end'() {
    const page = await open('about:blank')
    await page.clock.install()
    await page.goto(at(`tail?topic=${topic}s`))
    await page.getByText('Connected. Waiting for events.').waitFor()
    let looks = 0
    let there = false
    await page.route(/\/events\/20/, (route) => (looks++, there ? route.continue() : route.fulfill({status: 404, json: {error: {code: 'no_event', message: 'there is no such event', request_id: 'x'}}})))
    await send([{user_id: 'u', message: 'never there'}], topic + 's')
    await page.getByRole('grid', {name: 'Live events'}).getByText('never there').click()
    const drawer = page.getByRole('complementary', {name: 'Event'})
    await drawer.getByText('on its way: not in ClickHouse yet').waitFor()
    await page.clock.runFor(120_000)
    await drawer.getByText('not stored yet', {exact: true}).waitFor()
    for (const end = Date.now() + patience; looks < 20 && Date.now() < end;) await new Promise((done) => setTimeout(done, 50)) // the page's clock stands
    assert.equal(looks, 20)
    await page.clock.runFor(60_000)
    assert.equal(looks, 20)
    there = true
    await drawer.getByRole('button', {name: 'Look again'}).click()
    await drawer.getByText('stored', {exact: true}).waitFor()
    assert.ok(looks > 20)
  },
  async 'a server that hangs: a banner within three seconds'() {
    const net = await between()
    const page = await open('about:blank')
    await page.clock.install()
    await page.goto(at('health', net.base))
    await page.getByText('Ready', {exact: true}).waitFor()
    await page.clock.pauseAt(Date.now() + 3600_000) // from here the page's own clock goes as it is told
    net.hang()
    await page.clock.runFor(3000)
    const banner = page.getByRole('alert').filter({hasText: 'Almanac does not answer.'})
    await banner.waitFor()
    net.mend()
    await page.clock.resume()
    await banner.waitFor({state: 'detached'})
    net.close()
  },
}

await run(scenarios)
