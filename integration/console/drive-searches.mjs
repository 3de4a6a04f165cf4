// Searches over several topics, searches that are kept, and columns.
import assert from 'node:assert/strict'
import {execFile} from 'node:child_process'
import {promisify} from 'node:util'
import {at, call, filter, found, measured, offered, open, rows, run, send, told, until} from './page.mjs'

const almanac = (...args) => promisify(execFile)(told.program, [...args, '--data', told.data])
// Services are others each time, so that the script may run twice on one Almanac.
const salt = Date.now().toString(36)
const service = `both-${salt}`
const where = `service = '${service}'`
const search = (topics, more = '') => `search?topic=${topics}&from=-1d&where=${encodeURIComponent(where)}${more}`
const menu = (page) => page.getByRole('dialog', {name: 'Searches'})
const withToken = async (fragment, options) => {
  const page = await open(`${told.base}/console/#token=${told.token}`, options)
  await page.getByRole('button', {name: 'Token set'}).waitFor()
  await page.evaluate((to) => (location.hash = '#/' + to), fragment)
  return page
}

const scenarios = {
  async 'two topics in one list, merged by time'() {
    for (const topic of ['left', 'right']) await almanac('topics', 'apply', topic)
    const begin = Date.now() - 600_000
    for (const [i, topic] of ['left', 'right'].entries()) {
      await send(Array.from({length: 150}, (_, n) => ({ts: new Date(begin + (2 * n + i) * 1000).toISOString(), level: n % 3 ? 'info' : 'error', service, user_id: 'u-' + (n % 5), message: `${topic} ${n}`})), topic)
    }
    const page = await open(at(search('left')))
    await found(page, '150 of 150 events')
    await page.getByRole('button', {name: 'Topics: left'}).click()
    await page.getByRole('checkbox', {name: 'Also right'}).click()
    await page.keyboard.press('Escape')
    await found(page, '200 of 300 events')
    const first = await rows(page).first().innerText()
    assert.match(first, /right/)
    assert.match(await rows(page).nth(1).innerText(), /left 149/)
    await until(page, 'all events', async () => {
      await page.getByRole('grid', {name: 'Events'}).evaluate((e) => e.scrollTo(0, e.scrollHeight))
      return page.getByText('300 of 300 events').isVisible()
    })
    await found(page, '300 of 300 events')
    // Bars by topic, and facets as sums of both.
    await page.getByRole('region', {name: 'Events over time, 300 in all'}).getByRole('button', {name: /left\s+150/}).waitFor()
    await page.getByRole('button', {name: 'Only level error'}).click()
    await found(page, '100 of 100 events')
    // One event, and a link to it.
    await rows(page).nth(1).click()
    const drawer = page.getByRole('complementary', {name: 'Event'})
    await drawer.getByText(/^left 147$/).first().waitFor()
    const other = await open(page.url())
    await other.getByRole('complementary', {name: 'Event'}).getByText(/^left 147$/).first().waitFor()
    await page.getByRole('button', {name: /left\s+50/}).first().click()
    await found(page, '50 of 50 events')
    await page.getByRole('button', {name: 'Topics: left', exact: true}).waitFor()
  },
  async 'newer events of two topics'() {
    const page = await open(at(search('left,right')))
    await found(page, '200 of 300 events')
    await send([{service, message: 'new in right'}], 'right')
    await page.getByRole('button', {name: '1 newer event', exact: true}).click()
    await found(page, '201 of 301 events')
    assert.match(await rows(page).first().innerText(), /new in right/)
  },
  async 'a search saved under a name, shown to others, replaced and removed'() {
    const name = `errors / ${salt} <b>`
    const page = await withToken(search('left,right', '&cols=user_id'))
    await found(page, '200 of 301 events')
    await page.getByRole('button', {name: 'Searches'}).click()
    await menu(page).getByRole('textbox', {name: 'Save this search as'}).fill(name)
    await menu(page).getByRole('button', {name: 'Save', exact: true}).click()
    await menu(page).getByRole('button', {name: `Remove ${name}`}).waitFor()
    assert.deepEqual(JSON.parse(await call('GET', '/v1/searches', 'application/json')).searches.find((s) => s.name === name)?.shown, {cols: 'user_id'})
    const other = await withToken('search?topic=left&from=all')
    await other.getByRole('button', {name: 'Searches'}).click()
    await menu(other).getByText(name).click()
    await found(other, '200 of 301 events')
    assert.equal(await filter(other).inputValue(), where)
    await other.getByRole('separator', {name: 'Width of user_id'}).waitFor()
    await other.getByRole('button', {name: 'Searches'}).click()
    await menu(other).getByRole('textbox', {name: 'Save this search as'}).fill(name)
    await menu(other).getByRole('button', {name: 'Replace'}).click()
    await menu(other).getByRole('button', {name: `Remove ${name}`}).click()
    await menu(other).getByRole('button', {name: 'Remove', exact: true}).click()
    await menu(other).getByText(name).waitFor({state: 'detached'})
    assert.ok(!(await call('GET', '/v1/searches', 'application/json')).includes(salt + ' <b>'))
  },
  async 'to save needs a token, and the page says of which role'() {
    const page = await open(at(search('left')))
    await page.getByRole('button', {name: 'Searches'}).click()
    await menu(page).getByRole('textbox', {name: 'Save this search as'}).fill('mine')
    await menu(page).getByRole('button', {name: 'Save', exact: true}).click()
    await menu(page).getByText(/this needs a token with the role read/).waitFor()
  },
  async 'recent searches are in this browser, until they are forgotten'() {
    const page = await open(at(search('left')))
    await found(page, '150 of 150 events')
    await filter(page).fill(`${where} AND level = 'error'`)
    await page.keyboard.press('Enter')
    await found(page, '50 of 50 events')
    await page.getByRole('button', {name: 'Searches'}).click()
    await menu(page).getByText(where, {exact: true}).click()
    await found(page, '150 of 150 events')
    await page.getByRole('button', {name: 'Searches'}).click()
    await menu(page).getByRole('button', {name: 'Forget'}).click()
    await menu(page).getByText('What you search for is listed here.').or(menu(page).getByRole('heading', {name: 'Saved'})).waitFor()
    assert.equal(await page.evaluate(() => localStorage.getItem('almanac-recent')), null)
  },
  async 'a browser that refuses storage'() {
    const page = await open('about:blank')
    await page.addInitScript(() => {
      for (const kind of ['localStorage', 'sessionStorage']) Object.defineProperty(window, kind, {get() { throw new DOMException('refused', 'SecurityError') }})
    })
    await page.goto(at(search('left')))
    await found(page, '150 of 150 events')
    await page.getByRole('button', {name: 'Theme: as the system'}).click()
    await page.getByRole('button', {name: 'Theme: light'}).waitFor()
    await page.getByRole('button', {name: 'Searches'}).click()
    await menu(page).getByText(where, {exact: true}).waitFor() // until the page is left
  },
  async 'columns, chosen, resized by the mouse and by keys, and kept in the address'() {
    const page = await open(at(search('left')))
    await found(page, '150 of 150 events')
    const add = page.getByRole('combobox', {name: 'Add a column'})
    await offered(page, add)
    await add.selectOption('user_id')
    const grip = page.getByRole('separator', {name: 'Width of user_id'})
    const width = async () => Math.round((await rows(page).first().getByRole('gridcell').nth(3).boundingBox()).width)
    await until(page, 'the usual width', async () => (await width()) === 104)
    const box = await measured(page, grip)
    await page.mouse.move(box.x + 3, box.y + 5)
    await page.mouse.down()
    await page.mouse.move(box.x + 103, box.y + 5, {steps: 5})
    await page.mouse.up()
    await until(page, 'the width that was dragged', async () => (await width()) === 204)
    await grip.press('ArrowLeft')
    await until(page, 'a narrower one', async () => (await width()) === 188)
    await page.reload()
    await until(page, 'the same after a reload', async () => (await width()) === 188)
    await grip.hover()
    await page.getByRole('button', {name: 'Remove user_id'}).last().click()
    await grip.waitFor({state: 'detached'})
  },
  async 'the length of a bar is chosen, and stays by the address'() {
    const page = await open(at(search('left')))
    await found(page, '150 of 150 events')
    const step = page.getByRole('combobox', {name: 'Length of a bar'})
    const asked = page.waitForRequest(/\/histogram\?.*step=5m/)
    await step.selectOption('each 5m')
    await asked
    await page.reload()
    await found(page, '150 of 150 events')
    assert.equal(await step.inputValue(), '5m')
    await step.selectOption('as fits')
    await until(page, 'no length in the address', async () => !page.url().includes('step=') && /^each /.test(await step.locator('option:checked').innerText()))
    await page.goto(at(search('left', '&step=1s'))) // one that is too short for the range is not asked for
    const again = page.waitForRequest(/\/histogram\?/)
    await page.reload()
    assert.doesNotMatch((await again).url(), /step=/)
    await found(page, '150 of 150 events')
    assert.equal(await step.inputValue(), '')
  },
  async 'a field that no event has is not among the fields'() {
    const page = await open(at(search('left')))
    const fields = page.getByRole('complementary', {name: 'Fields'})
    await fields.getByRole('button', {name: /^Only level error/}).waitFor()
    for (const [name, n] of [['service', 1], ['type', 0]]) assert.equal(await fields.getByText(name, {exact: true}).count(), n, name)
  },
  async 'topics, and the line that changes one'() {
    await almanac('topics', 'apply', 'kept', '--keep-days', '30', '--field', 'endpoint:lowcardinality')
    const page = await open(at('topics'))
    const kept = page.getByRole('region', {name: 'kept', exact: true})
    await kept.getByText('30 days').waitFor()
    await kept.getByRole('cell', {name: 'endpoint'}).waitFor()
    await kept.getByText('almanac topics apply kept --keep-days 90 --dry-run').waitFor()
    await almanac('topics', 'apply', 'kept', '--keep-days', '90', '--dry-run') // the line is one that works
  },
}

await run(scenarios)
