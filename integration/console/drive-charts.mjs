// Charts: what each draws is what the API answers, as numbers; a page of them is an address.
import assert from 'node:assert/strict'
import {ask, declare, iso, lines} from './example.mjs'
import {at, measured, open, openAt, run, settled, until} from './page.mjs'

const minute = 60_000
const begin = Math.floor(Date.now() / (10 * minute)) * 10 * minute - 60 * minute
const end = begin + 60 * minute
const range = `from=${iso(begin)}&to=${iso(end)}`
const charts = (all) => encodeURIComponent(JSON.stringify(all))
const logs = (chart = {}) => ({source: 'search', shape: 'bar', topic: 'chart_logs', ...chart})

/** numbers are those of a chart: its names, and its rows, of which the first column is the time. */
async function numbers(page, name) {
  const card = page.getByRole('region', {name, exact: true})
  const button = card.getByRole('button', {name: 'Numbers'})
  await button.click()
  const table = card.getByRole('table')
  await table.waitFor()
  const all = await table.getByRole('row').evaluateAll((rows) => rows.map((r) => [...r.children].map((c) => c.textContent)))
  await button.click()
  await card.locator('canvas').waitFor()
  return {names: all[0].slice(1), rows: all.slice(1)}
}

const sum = (rows, column) => rows.reduce((n, r) => n + Number(r[column]), 0)
const regions = (page) => page.getByRole('main').getByRole('region')

const scenarios = {
  async 'a count over time of a search is sent to Charts'() {
    await declare('chart_logs', 'log')
    await declare('chart_metrics', 'metric')
    await lines('chart_logs', Array.from({length: 300}, (_, i) => ({ts: iso(begin + i * 12_000), level: i % 10 ? 'info' : 'error', service: i % 3 ? 'shop' : 'b<i>k', message: 'm' + i})))
    await lines('chart_metrics', Array.from({length: 60}, (_, i) => ['a', 'b'].map((service, k) => ({ts: iso(begin + i * minute), type: 'load', service, value: i * (k + 1)}))).flat())
    const page = await open(at(`search?topic=chart_logs&${range}&where=service+%3D+'shop'`))
    await page.getByText('200 of 200 events').waitFor()
    await page.getByRole('button', {name: 'To Charts'}).click()
    const first = await numbers(page, "chart_logs by level: service = 'shop'")
    assert.deepEqual(first.names, ['info', 'error']) // levels in their order
    assert.deepEqual([sum(first.rows, 1), sum(first.rows, 2)], [180, 20])
    // A second one is added to the first, and the address has both.
    await page.goto(at(`search?topic=chart_logs&${range}&by=service`))
    await page.getByText('200 of 300 events').waitFor()
    await page.getByRole('button', {name: 'To Charts'}).click()
    await until(page, 'two charts', async () => page.url().includes('#/charts?') && (await regions(page).count()) === 2)
    await page.reload()
    const second = await numbers(page, 'chart_logs by service')
    assert.deepEqual(second.names, ['b<i>k', 'shop'])
    assert.deepEqual([sum(second.rows, 1), sum(second.rows, 2)], [100, 200])
    assert.equal(await page.locator('main i i').count(), 0)
    await page.getByRole('button', {name: 'Remove chart_logs by service'}).click()
    await until(page, 'one chart', async () => (await regions(page).count()) === 1)
  },
  async 'metrics, PromQL and SQL'() {
    const page = await open(at(`charts?${range}&c=` + charts([
      {source: 'metric', shape: 'line', topic: 'chart_metrics', metric: 'load', align: 'max', reduce: 'sum', title: 'aligned'},
      {source: 'promql', shape: 'area', topic: 'chart_metrics', text: 'sum by (service) (load)', title: 'promql'},
      {source: 'sql', shape: 'bar', title: 'over time', text: 'SELECT toStartOfTenMinutes(ts) AS t, level, count() FROM chart_logs WHERE ts >= {from} AND ts < {to} GROUP BY t, level ORDER BY t'},
      {source: 'sql', shape: 'bar', title: 'by name', text: 'SELECT service, count() AS n FROM chart_logs GROUP BY service ORDER BY n DESC'},
    ])))
    const aligned = await numbers(page, 'aligned')
    assert.deepEqual(aligned.names, ['load'])
    const api = await ask('GET', `/v1/topics/chart_metrics/align?metric=load&${range}&period=60s&align=max&reduce=sum`)
    assert.deepEqual(aligned.rows.map((r) => Number(r[1])), api.groups[0].points.map((p) => p.value))
    const promql = await numbers(page, 'promql')
    assert.deepEqual(promql.names, ['service=a', 'service=b'])
    assert.ok(promql.rows.length > 50)
    for (const [, a, b] of promql.rows) assert.equal(Number(b), 2 * Number(a))
    const time = await numbers(page, 'over time')
    assert.deepEqual(time.names, ['error', 'info'])
    assert.deepEqual(time.rows.map((r) => r.slice(1)), Array.from({length: 6}, () => ['5', '45']))
    const named = await numbers(page, 'by name')
    assert.deepEqual(named.rows, [['shop', '200'], ['b<i>k', '100']])
  },
  async 'a chart is made and changed'() {
    const page = await open(at(`charts?${range}`))
    await page.getByText('No charts are on this page yet.').waitFor()
    await page.getByRole('button', {name: '+ SQL'}).click()
    await page.getByText('Write a statement.').waitFor()
    await page.getByRole('textbox', {name: 'SQL'}).fill('SELECT nope FROM chart_logs')
    await page.keyboard.press('Control+Enter')
    await page.getByText(/Unknown expression identifier/).waitFor()
    await page.getByRole('textbox', {name: 'SQL'}).fill("SELECT 'only text' AS t")
    await page.keyboard.press('Control+Enter')
    await page.getByText('A chart needs a column of numbers beside its times or names.').waitFor()
    await page.getByRole('button', {name: '+ Search'}).click()
    const edited = page.getByRole('main').locator('.editing')
    await edited.getByRole('combobox', {name: 'topic'}).selectOption('chart_logs')
    await edited.getByRole('textbox', {name: 'filter'}).fill("service = 'shop' AND")
    await page.keyboard.press('Enter')
    await edited.getByText(/at column/).waitFor()
    await edited.getByRole('textbox', {name: 'filter'}).fill("service = 'shop'")
    await page.keyboard.press('Enter')
    await edited.getByRole('textbox', {name: 'title'}).fill('Shop')
    await page.keyboard.press('Enter')
    await edited.getByRole('button', {name: 'area'}).click()
    assert.deepEqual([sum((await numbers(page, 'Shop')).rows, 1)], [200])
    await page.getByRole('button', {name: '+ PromQL'}).click()
    await page.getByRole('textbox', {name: 'PromQL'}).fill('sum(')
    await page.keyboard.press('Control+Enter')
    await page.getByText(/unclosed left parenthesis/).waitFor()
    await page.reload()
    await until(page, 'three charts', async () => (await regions(page).count()) === 3)
  },
  async 'one range and one crosshair for all'() {
    const page = await open(at(`charts?${range}&c=` + charts([logs({title: 'one'}), logs({title: 'two', by: 'service', shape: 'line'})])))
    const plots = page.locator('.u-over')
    await until(page, 'two charts', async () => (await plots.count()) === 2)
    let box = await measured(page, plots.first())
    const times = page.locator('.plot-at')
    let by = 0
    await until(page, 'the same time below both', async () => await page.mouse.move(box.x + box.width / 2 + (by ^= 1), box.y + 20) || (await times.nth(0).innerText()) !== '' && (await times.nth(0).innerText()) === (await times.nth(1).innerText()))
    box = await measured(page, plots.first()) // the times below it may have moved it
    await page.mouse.move(box.x + box.width / 2, box.y + 20)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.75, box.y + 20, {steps: 4})
    await page.mouse.up()
    await until(page, 'a shorter range', () => !page.url().includes(range))
    await page.getByRole('button', {name: /^Time range: 20/}).waitFor()
    await settled(page) // until then a chart has what it showed before
    const shown = await numbers(page, 'one')
    assert.ok(sum(shown.rows, 1) > 20 && sum(shown.rows, 1) < 150, JSON.stringify(shown))
  },
  async 'the range is kept, in the address and from page to page, and may be all time'() {
    const range = (name) => page.getByRole('button', {name: 'Time range: ' + name, exact: true})
    const page = await open(at('charts?c=' + charts([logs({title: 'kept'})])))
    await range('Last 4 hours').click()
    await page.waitForURL(/from=-4h/)
    await page.getByRole('dialog', {name: 'Time range'}).getByRole('button', {name: 'All time'}).click()
    await range('All time').waitFor()
    await page.reload()
    await range('All time').waitFor()
    assert.equal(sum((await numbers(page, 'kept')).rows, 1), 300)
    await page.getByRole('navigation').getByRole('link', {name: 'Search', exact: true}).click()
    await page.getByRole('combobox', {name: 'Filter'}).waitFor()
    await page.getByRole('navigation').getByRole('link', {name: 'Charts', exact: true}).click()
    await range('All time').waitFor()
    await until(page, 'the range in the address', () => /charts\?.*from=all/.test(page.url()))
    await page.goto(at('charts?from=2020-01-01&to=2020-01-02&c=' + charts([logs({title: 'kept'})])))
    await page.getByText('Nothing is in this range.').waitFor()
    await page.getByRole('button', {name: 'Show all time'}).click()
    assert.equal(sum((await numbers(page, 'kept')).rows, 1), 300)
  },
  async 'twelve, and no address breaks the page'() {
    const page = await open(at(`charts?${range}&c=` + charts(Array.from({length: 20}, (_, i) => logs({title: 'chart ' + i})))))
    await until(page, 'twelve charts', async () => (await page.locator('.u-over').count()) === 12)
    assert.ok(await page.getByRole('button', {name: '+ Search'}).isDisabled())
    for (const c of ['{', '[null,1,"x",{"source":"nope"},{"__proto__":{"a":1}}]', '[{"source":"search","shape":"bar","topic":7}]']) {
      await page.goto('about:blank')
      await page.goto(at(`charts?${range}&c=${encodeURIComponent(c)}`))
      await page.getByText(/^(No charts are on this page yet|Choose a topic)\.$/).first().waitFor()
    }
    assert.equal(await page.evaluate(() => ({}).a), undefined)
  },
  async 'charts saved under a name, shown to others, replaced and removed'() {
    const name = 'on call / ' + Date.now().toString(36)
    const menu = (page) => page.getByRole('dialog', {name: 'Saved charts'})
    const page = await openAt(`charts?${range}&c=` + charts([logs({title: 'one'}), logs({title: 'two', by: 'service'})]))
    await page.getByRole('button', {name: 'Saved charts'}).click()
    await menu(page).getByRole('textbox', {name: 'Save these charts as'}).fill(name)
    await menu(page).getByRole('button', {name: 'Save', exact: true}).click()
    await menu(page).getByRole('button', {name: `Remove ${name}`}).waitFor()
    const held = (await ask('GET', '/v1/searches')).searches.find((s) => s.name === name)
    assert.deepEqual([held.kind, held.topics, held.where], ['charts', ['chart_logs'], undefined])
    const other = await openAt('charts?c=none')
    await other.getByRole('button', {name: 'Saved charts'}).click()
    assert.ok(await menu(other).getByRole('button', {name: 'Save', exact: true}).isDisabled()) // nothing is shown
    await menu(other).getByText(name).click()
    await until(other, 'two charts', async () => (await regions(other).count()) === 2)
    assert.deepEqual([sum((await numbers(other, 'one')).rows, 1)], [300])
    assert.ok(other.url().includes('from=20'))
    // They are not among searches, and a search does not take their name.
    await page.evaluate(() => (location.hash = '#/search?topic=chart_logs'))
    await page.getByRole('button', {name: 'Searches'}).click()
    const searches = page.getByRole('dialog', {name: 'Searches'})
    await searches.getByRole('textbox', {name: 'Save this search as'}).fill(name)
    assert.equal(await searches.getByText(name).count(), 0)
    await searches.getByRole('button', {name: 'Save', exact: true}).click()
    await searches.getByText(/is saved, and of another kind/).waitFor()
    await other.getByRole('button', {name: 'Remove two'}).click()
    await until(other, 'one chart', async () => (await regions(other).count()) === 1)
    await other.getByRole('button', {name: 'Saved charts'}).click()
    await menu(other).getByRole('textbox', {name: 'Save these charts as'}).fill(name)
    await menu(other).getByRole('button', {name: 'Replace'}).click()
    await until(other, 'one chart that is saved', async () => JSON.parse((await ask('GET', '/v1/searches')).searches.find((s) => s.name === name).shown.c).length === 1)
    await menu(other).getByRole('button', {name: `Remove ${name}`}).click()
    await menu(other).getByRole('button', {name: 'Remove', exact: true}).click()
    await menu(other).getByText('Charts that are saved are listed here').waitFor()
  },
  async 'charts in a narrow window'() {
    const page = await open(at(`charts?${range}&c=` + charts([logs({by: 'level'}), logs({by: 'service', shape: 'area'})])), {viewport: {width: 360, height: 700}})
    await until(page, 'two charts', async () => (await page.locator('.u-over').count()) === 2)
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth))
  },
}

await run(scenarios)
