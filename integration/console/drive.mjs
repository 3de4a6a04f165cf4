// Drives the page as a person does, of an Almanac with two dead letters.
import assert from 'node:assert/strict'
import {readFile} from 'node:fs/promises'
import http from 'node:http'
import {at, call, filter, found, list, measured, open, rows, run, send, settled, statement, told, until, write} from './page.mjs'

const begin = Date.now() - 3600_000
const ts = (i) => new Date(begin + i * 1000).toISOString()
const large = 'x'.repeat(60_000) + ' its end'
const hostile = [
  {ts: ts(900), level: 'error', service: 'evil', message: '<img src=x onerror="document.title=\'ran\'"><script>document.title="ran"</script>'},
  {ts: ts(901), level: 'error', service: 'evil', message: 'invoice_\u202Egpj.exe', user_id: '<b>u</b>'},
  {ts: ts(902), level: 'warn', service: 'evil', message: large},
  {ts: ts(903), level: 'warn', service: 'evil', message: 'a strange name', attributes: {['__proto__']: 'polluted', "it's": 'quoted', list: '[1,{"a":"<i>"}]'}},
]
hostile[3].attributes = Object.fromEntries([["it's", 'quoted'], ['list', '[1,{"a":"<i>"}]']])
Object.defineProperty(hostile[3].attributes, '__proto__', {value: 'polluted', enumerable: true})

const scenarios = {
  async 'an empty Almanac says how to send'() {
    const page = await open(told.base + '/')
    await page.getByRole('heading', {name: 'Send events'}).waitFor()
    await page.getByText('Connected. Waiting for events.').waitFor()
    assert.match(await page.getByRole('tabpanel').innerText(), new RegExp(`curl '${told.base}/v1/topics/app/events'`))
    await send([{level: 'info', service: 'shop', message: 'the first one'}])
    await page.getByRole('grid', {name: 'Arriving'}).getByText('the first one').waitFor()
  },
  async 'search shows what is stored'() {
    await send(Array.from({length: 640}, (_, i) => ({ts: ts(i), level: i % 8 ? 'info' : 'error', service: i % 2 ? 'shop' : 'bank', user_id: 'u-' + (i % 20), message: `order ${i} placed`})))
    await send(hostile)
    const page = await open(at('search?topic=app&from=all'))
    await found(page, '200 of 645 events')
    assert.match(await rows(page).first().innerText(), /the first one/)
    await page.getByRole('region', {name: 'Events over time, 645 in all'}).waitFor()
  },
  async 'older events come as one scrolls'() {
    const page = await open(at('search?topic=app&from=all'))
    await found(page, '200 of 645 events')
    await until(page, 'the oldest at the end of the list', async () => { // the last that came are below what was its end
      await list(page).evaluate((e) => e.scrollTo(0, e.scrollHeight))
      return await list(page).getByText('order 0 placed').isVisible() && page.getByText('No older events in this range').isVisible()
    })
    await found(page, '645 of 645 events')
  },
  async 'text of events is text'() {
    const page = await open(at("search?topic=app&from=all&where=service+%3D+'evil'"))
    await found(page, '4 of 4 events')
    await list(page).getByText('<img src=x onerror=').waitFor()
    await list(page).getByText('U+202E').waitFor()
    for (const [text, seen] of [['<img src=x', '<script>document.title="ran"</script>'], ['gpj.exe', '<b>u</b>'], ['a strange name', 'polluted'], ['xxxx', 'its end']]) {
      await list(page).getByRole('row').filter({hasText: text}).click()
      await page.getByRole('complementary', {name: 'Event'}).getByText(seen).first().waitFor()
    }
    assert.equal(await page.locator('img, main script, b b, iframe').count(), 0)
    assert.equal(await page.title(), 'Almanac')
    assert.equal(await page.evaluate(() => ({}).polluted), undefined)
  },
  async 'a filter, by keys, and its address'() {
    const page = await open(at('search?topic=app&from=all'))
    await found(page, '200 of 645 events')
    await page.keyboard.press('/')
    await page.keyboard.type("level = 'error' AND service = 'shop'")
    await page.keyboard.press('Enter')
    await page.getByText('No events match in this range.').waitFor() // errors are at even numbers
    await filter(page).fill("level = 'error' AND service = 'bank'")
    await page.keyboard.press('Enter')
    await found(page, '80 of 80 events')
    await page.reload()
    await found(page, '80 of 80 events')
    assert.equal(await filter(page).inputValue(), "level = 'error' AND service = 'bank'")
    await page.goBack()
    await page.getByText('No events match in this range.').waitFor()
  },
  async 'a mistake is underlined where the server says'() {
    const page = await open(at('search?topic=app&from=all'))
    await found(page, '200 of 645 events')
    await filter(page).fill("level = 'error' AND servce = 'x'")
    await page.keyboard.press('Enter')
    assert.match(await page.getByRole('alert').filter({hasText: 'column'}).innerText(), /column 21.*servce/)
    assert.equal(await page.locator('.filter u').innerText(), 'servce')
  },
  async 'suggestions'() {
    const page = await open(at('search?topic=app&from=all'))
    const offered = page.getByRole('listbox', {name: 'Suggestions'}).getByRole('option')
    let wait = 3_000
    await until(page, 'the field service', async () => { // fields that do not come in time are asked for with the next key
      await filter(page).fill('')
      await filter(page).pressSequentially('serv')
      wait *= 2
      return offered.filter({hasText: 'service'}).click({timeout: wait}).then(() => true, () => false)
    })
    await offered.filter({hasText: 'contains'}).waitFor()
    await offered.filter({hasText: /^=is$/}).click()
    let patience = 3_000 // twice as much each time: values that do not come in time are asked for with the next key
    await until(page, "the value 'bank'", async () => {
      if (await offered.filter({hasText: "'bank'"}).click({timeout: patience}).then(() => true, () => false)) return true
      patience *= 2
      await filter(page).press('Space')
      return false
    })
    await page.keyboard.press('Escape')
    await page.keyboard.press('Enter')
    await found(page, '200 of 320 events')
  },
  async 'facets, for and against'() {
    const page = await open(at('search?topic=app&from=all'))
    await page.getByRole('button', {name: 'Only level error'}).click()
    await found(page, '82 of 82 events')
    await page.getByRole('button', {name: 'Without service evil'}).click()
    await found(page, '80 of 80 events')
    assert.equal(await filter(page).inputValue(), "level = 'error' AND service != 'evil'")
    await page.getByRole('button', {name: 'Only level error'}).click()
    await until(page, 'the filter without the level', async () => (await filter(page).inputValue()) === "service != 'evil'")
  },
  async 'a range by dragging'() {
    const page = await open(at('search?topic=app&from=all&where=service+%3D+%27shop%27'))
    const chart = page.getByTitle('Drag over the bars to choose a range')
    await found(page, '200 of 321 events')
    const box = await measured(page, chart)
    await page.mouse.move(box.x + 1, box.y + 40)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width / 3, box.y + 40, {steps: 4})
    await page.mouse.up()
    await until(page, 'a range in the address', () => /from=20\d\d-.*to=20\d\d-/.test(page.url()))
    await page.getByRole('button', {name: /^Time range: 20/}).waitFor()
  },
  async 'one event, and a link to it'() {
    const page = await open(at('search?topic=app&from=all'))
    await found(page, '200 of 645 events')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    const drawer = page.getByRole('complementary', {name: 'Event'})
    await drawer.getByText('a strange name').waitFor()
    await drawer.getByText('stored', {exact: true}).waitFor()
    await drawer.getByRole('button', {name: 'show all', exact: true}).click()
    await until(page, 'six rows around it', async () => (await drawer.getByRole('row').count()) >= 6)
    const link = page.url()
    assert.match(link, /event=20/)
    const other = await open(link)
    await other.getByRole('complementary', {name: 'Event'}).getByText('a strange name').waitFor()
    await page.keyboard.press('Escape')
    await drawer.waitFor({state: 'detached'})
  },
  async 'tail, paused and resumed'() {
    const page = await open(at("tail?topic=app&where=service+%3D+'live'"))
    await page.getByText('Connected. Waiting for events.').waitFor()
    await send([{service: 'live', message: 'the one'}, {service: 'quiet', message: 'not this'}])
    const live = page.getByRole('grid', {name: 'Live events'})
    await live.getByText('the one').waitFor()
    await page.keyboard.press('p')
    await page.getByText('paused', {exact: true}).waitFor()
    await send([{service: 'live', message: 'the two'}])
    await page.getByRole('button', {name: '1 newer events'}).waitFor()
    assert.equal(await live.getByText('the two').count(), 0)
    await page.getByRole('button', {name: '1 newer events'}).click()
    await live.getByText('the two').waitFor()
    assert.equal(await live.getByRole('row').count(), 2)
  },
  async 'a lost connection, and back'() {
    const page = await open(at("tail?topic=app&where=service+%3D+'back'"))
    await page.getByText('Connected. Waiting for events.').waitFor()
    await send([{service: 'back', message: 'before'}])
    await page.getByText('before', {exact: true}).waitFor()
    await page.context().setOffline(true)
    await page.getByText('Almanac does not answer.').waitFor()
    await send([{service: 'back', message: 'meanwhile'}])
    await page.context().setOffline(false)
    await page.getByText('Almanac does not answer.').waitFor({state: 'detached'})
    await page.getByText('meanwhile', {exact: true}).waitFor()
    assert.equal(await page.getByRole('grid', {name: 'Live events'}).getByRole('row').count(), 2)
  },
  async 'newer events are told of, and brought by a click'() {
    const page = await open(at("search?topic=app&from=all&where=service+in+('bank',+'later')"))
    await found(page, '200 of 320 events')
    await list(page).evaluate((e) => e.scrollTo(0, 40 * 23 + 5))
    const read = rows(page).filter({hasText: 'order 540 placed'})
    const below = async () => { // the top of the list, which a banner may move
      const [row, box] = [await read.boundingBox(), await list(page).boundingBox()]
      return row && box && row.y - box.y
    }
    const before = await until(page, 'a row that is read', async () => (await read.count()) === 1 && below())
    await send(Array.from({length: 3}, (_, i) => ({service: 'later', message: `came later ${i}`})))
    await page.getByRole('button', {name: '3 newer events'}).click()
    await found(page, '203 of 323 events')
    await page.getByRole('button', {name: '3 newer events'}).waitFor({state: 'detached'})
    await until(page, 'the row where it was', async () => (await below()) === before)
    await list(page).evaluate((e) => e.scrollTo(0, 0))
    await list(page).getByText('came later 2').waitFor()
    assert.match(await rows(page).first().innerText(), /came later/)
    await send([{service: 'later', message: 'the last'}, {service: 'other', message: 'not this'}])
    await page.getByRole('button', {name: '1 newer event', exact: true}).click()
    await list(page).getByText('the last').waitFor()
    await page.getByRole('region', {name: 'Events over time, 324 in all'}).waitFor()
  },
  async 'SQL'() {
    const page = await open(at('sql'))
    await page.getByRole('complementary', {name: 'Tables'}).getByText('app', {exact: true}).click()
    await write(page, 'SELECT  FROM app')
    await page.keyboard.press('Home')
    for (const _ of 'SELECT ') await page.keyboard.press('ArrowRight')
    await page.getByRole('button', {name: 'Insert service'}).first().click()
    assert.equal(await statement(page).innerText(), 'SELECT service FROM app')
    await write(page, "SELECT service, count() AS n, max(if(user_id = '<b>u</b>', user_id, '')) AS u, NULL AS nothing FROM app WHERE service IN ('bank', 'evil') GROUP BY service ORDER BY n DESC")
    await page.keyboard.press('Control+Enter')
    const answer = page.getByRole('table', {name: 'Answer'})
    assert.deepEqual(await until(page, 'two rows', async () => (await answer.getByRole('row').count()) === 3 && answer.getByRole('cell').allInnerTexts()), ['bank', '320', '', 'NULL', 'evil', '4', '<b>u</b>', 'NULL'])
    await page.getByText(/^2 rows in .* s; [\d,]+ rows, .* read when the answer began$/).waitFor()
    const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name: 'Download CSV'}).click()])
    assert.match(await readFile(await file.path(), 'utf8'), /^"service","n","u","nothing"\n"bank",320,/)
    await page.reload()
    await statement(page).getByText(/^SELECT service, count/).waitFor()
    await write(page, 'SELECT number FROM numbers(5000)')
    await page.getByRole('button', {name: 'Run', exact: true}).click()
    await page.getByText('The page holds no more of the answer.').waitFor()
    assert.equal(await answer.getByRole('row').count(), 1001)
    await write(page, 'SELECT nope FROM app')
    await page.getByRole('button', {name: 'Run', exact: true}).click()
    await page.getByRole('alert').getByText(/nope/).first().waitFor()
    await write(page, 'SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1')
    await page.getByRole('button', {name: 'Run', exact: true}).click()
    await page.getByRole('button', {name: 'Cancel'}).click()
    await page.getByRole('alert').getByText('the statement was cancelled').waitFor()
  },
  async 'a token is asked for, and proves'() {
    const page = await open(at('proof'))
    await page.getByRole('button', {name: 'Verify now'}).click()
    await page.getByText('this needs a token with the role operate').waitFor()
    await page.getByLabel('Token', {exact: true}).fill(told.token)
    await page.getByRole('button', {name: 'Use it'}).click()
    await page.getByText(/^Proven .* ago$/).waitFor()
    await page.getByRole('button', {name: /active/}).first().click()
    await page.getByRole('link', {name: 'Search this shard'}).click()
    await until(page, 'the events of the shard', async () => (await rows(page).count()) > 0)
  },
  async 'dead letters, sent again and dropped once their reason is typed'() {
    const page = await open(at('proof'))
    const dead = page.getByRole('region', {name: 'Dead letters'})
    await dead.getByText('To see them needs a token with the role operate.').waitFor()
    await page.getByRole('button', {name: 'Token', exact: true}).click()
    await page.getByRole('dialog').getByRole('textbox', {name: 'Token'}).fill(told.token)
    await page.getByRole('button', {name: 'Use it'}).click()
    const reason = dead.getByRole('button', {name: /^app not-json 2 letters, /})
    await reason.click()
    for (const [i, text] of ['garbage <b>one</b>', 'garbage U+202Etwo'].entries()) {
      await dead.getByRole('article').nth(i).getByRole('button', {name: 'Payload'}).click()
      await dead.getByText(text).waitFor()
    }
    await dead.getByRole('button', {name: 'Send again'}).click()
    await dead.getByLabel('To send 2 letters again').fill('not-json')
    await dead.getByRole('button', {name: 'Send them again'}).click()
    await dead.getByText(/^0 sent again, 0 dropped, 2 kept: /).waitFor() // they are not JSON still
    await reason.click()
    await dead.getByRole('button', {name: 'Drop'}).click()
    const sure = dead.getByRole('button', {name: 'Drop them'})
    await dead.getByLabel('To drop 2 letters for good').fill('not')
    assert.ok(await sure.isDisabled())
    await dead.getByLabel('To drop 2 letters for good').fill('not-json')
    await sure.click()
    await dead.getByText(/^0 sent again, 2 dropped, 0 kept$/).waitFor()
    await dead.getByText('There are none').waitFor()
  },
  async 'a token in the address goes from it at once'() {
    const page = await open(`${told.base}/console/#token=${told.token}`)
    await page.getByRole('button', {name: 'Token set'}).waitFor()
    assert.ok(!page.url().includes('alm_'), page.url())
    const [request] = await Promise.all([page.waitForRequest(/\/v1\//), page.reload()])
    assert.equal(request.headers()['authorization'], 'Bearer ' + told.token)
    assert.equal(await page.evaluate(() => document.cookie + JSON.stringify(localStorage)).then((kept) => kept.includes('alm_')), false)
  },
  async 'a token in a link of another site is not taken'() {
    const page = await open('about:blank')
    await page.setContent(`<a href="${told.base}/console/#token=${told.token}" rel="noreferrer">a prize</a>`)
    await page.getByText('a prize').click()
    await page.getByRole('button', {name: 'Token', exact: true}).waitFor()
    assert.ok(page.url().startsWith(told.base) && !page.url().includes('alm_'), page.url()) // it goes from the address all the same
    const [request] = await Promise.all([page.waitForRequest(/\/v1\//), page.reload()])
    assert.equal(request.headers()['authorization'], undefined)
  },
  async 'health'() {
    const page = await open(at('health'))
    await page.getByText('Ready', {exact: true}).waitFor()
    await page.getByRole('cell', {name: 'EVENTS', exact: true}).waitFor()
    await page.getByRole('cell', {name: 'router'}).waitFor()
    for (const server of ['NATS', 'ClickHouse']) await page.getByRole('table', {name: 'Disks'}).getByRole('row').filter({hasText: server}).getByText(/^[\d.]+ [KMGTP]?B free of [\d.]+ [KMGTP]?B$/).waitFor()
    await page.getByText(/^Almanac \S+ · NATS \d\S* · ClickHouse \d\S*$/).waitFor()
    await page.getByRole('region', {name: 'Inputs'}).getByRole('row').filter({hasText: 'app'}).getByText(/ ago$/).waitFor()
    await page.getByRole('region', {name: 'Alerts'}).getByText('No rules are declared.').waitFor()
    await call('PUT', '/v1/alerts/rules/page', 'application/json', JSON.stringify({topic: 'app', rules: [{alert: 'Burning', where: "service = 'fire'", window: '1h', condition: '>= 1', by: 'user_id', annotations: {summary: 'call <b>help</b>'}}]}))
    await page.getByText('None of 1 rules is pending or fires.').waitFor()
    await send([{service: 'fire', user_id: 'u-\u202E1', message: 'it burns'}])
    const fires = page.getByRole('row').filter({hasText: 'Burning'})
    await fires.getByRole('cell', {name: 'firing'}).waitFor()
    assert.match(await fires.innerText(), /call <b>help<\/b>/)
    assert.match(await fires.innerText(), /user_id u-U\+202E1/)
    await call('DELETE', '/v1/alerts/rules/page', 'application/json')
    await fires.waitFor({state: 'detached'})
  },
  async 'below a path prefix'() {
    const proxy = http.createServer((q, s) => {
      const to = http.request(told.base + q.url.replace(/^\/logs/, ''), {method: q.method, headers: q.headers}, (a) => { s.writeHead(a.statusCode, a.headers); a.pipe(s) })
      to.on('error', () => s.destroy())
      q.pipe(to)
    })
    await new Promise((done) => proxy.listen(0, '127.0.0.1', done))
    const page = await open(at("search?topic=app&from=all&where=service+%3D+'evil'", `http://127.0.0.1:${proxy.address().port}/logs`))
    await found(page, '4 of 4 events')
    proxy.close()
  },
  async 'a narrow window'() {
    const page = await open(at('search?topic=app&from=all'), {viewport: {width: 360, height: 700}})
    await rows(page).first().waitFor()
    for (const to of ['search', 'tail', 'sql', 'proof', 'erase', 'topics', 'health', 'send']) {
      await page.evaluate((to) => (location.hash = '#/' + to + '?topic=app&from=all'), to)
      await page.locator(`nav a[aria-current]`).getByText(to, {exact: false}).waitFor()
      await settled(page)
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${to} is wider than the window`)
    }
  },
  async 'keys are listed'() {
    const page = await open(at('health'))
    await page.getByText('Ready', {exact: true}).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', {name: 'Keys'}).getByText('go to the filter').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({state: 'detached'})
    await page.keyboard.press('g')
    await page.keyboard.press('p')
    await page.getByRole('button', {name: 'Verify now'}).waitFor()
  },
}

await run(scenarios)
