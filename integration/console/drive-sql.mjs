// SQL: the editor, completion, tabs, mistakes at their place, and an answer as a chart.
import assert from 'node:assert/strict'
import {declare, iso, lines} from './example.mjs'
import {at, open, run, statement, until, write} from './page.mjs'

const answer = (page) => page.getByRole('table', {name: 'Answer'})
const wrong = (page) => page.locator('[data-wrong]')
const execute = (page) => page.keyboard.press('Control+Enter')

const scenarios = {
  async 'tables and columns are offered'() {
    await declare('sql_logs', 'log')
    await lines('sql_logs', Array.from({length: 60}, (_, i) => ({ts: iso(Date.now() - i * 60_000), level: i % 3 ? 'info' : 'error', service: i % 2 ? 'shop' : 'bank', message: 'm' + i})))
    const page = await open(at('sql'))
    await page.getByRole('complementary', {name: 'Tables'}).getByText('sql_logs', {exact: true}).waitFor()
    await statement(page).click()
    await page.keyboard.type('SELECT count() FROM sql_lo')
    await page.getByRole('option', {name: 'sql_logs'}).first().click() // Enter right after the list came is a new line
    assert.equal(await statement(page).innerText(), 'SELECT count() FROM sql_logs')
    await page.keyboard.type(' WHERE servi')
    await page.getByRole('option', {name: /^service/}).first().click()
    await page.keyboard.type(" = 'shop'")
    await page.keyboard.press('Escape')
    await execute(page)
    await until(page, 'a count', async () => (await answer(page).count()) && (await answer(page).getByRole('cell').innerText()) === '30')
    await page.keyboard.press('?') // is typed, and lists no keys
    assert.equal(await page.getByRole('dialog').count(), 0)
  },
  async 'a mistake is marked where the server says'() {
    const page = await open(at('sql'))
    await statement(page).waitFor()
    for (const [sql, marked] of [
      ['SELECT a,\n b c d FROM sql_logs', 'd'],
      ["SELECT 'é\u{1F600}', 1 ~ FROM sql_logs", '~'], // positions count bytes
      ['SELECT servce FROM sql_logs', 'servce'],
      ['SELECT nofunc(service) FROM sql_logs', 'nofunc'],
      ['SELECT 1 FROM nothere', 'nothere'],
      ['SELECT (1', '('],
      ['SELECT 1 FROM', 'M'], // at the end: what is last
    ]) {
      await write(page, sql)
      await execute(page)
      const alert = page.locator('main').getByRole('alert') // the banner is elsewhere
      await alert.waitFor()
      assert.equal(await wrong(page).innerText(), marked, await alert.innerText())
      await page.keyboard.press('End')
      await page.keyboard.type(' ')
      await wrong(page).waitFor({state: 'detached'}) // it is another statement
    }
  },
  async 'statements in tabs, each with its answer'() {
    const page = await open(at('sql'))
    await write(page, "SELECT 'one' AS a")
    await execute(page)
    await answer(page).getByText('one').waitFor()
    await page.getByRole('button', {name: 'Another statement'}).click()
    await write(page, "SELECT 'two' AS a")
    await execute(page)
    await answer(page).getByText('two').waitFor()
    const tabs = page.getByRole('tablist', {name: 'Statements'}).getByRole('tab')
    await tabs.first().click()
    await answer(page).getByText('one').waitFor()
    await page.reload()
    await until(page, 'both statements', async () => (await tabs.count()) === 2 && /'one'/.test(await statement(page).innerText()))
    await page.getByRole('button', {name: 'Close statement 1'}).click()
    await until(page, 'the other statement', async () => (await tabs.count()) === 1 && /'two'/.test(await statement(page).innerText()))
    for (let i = 0; i < 7; i++) await page.getByRole('button', {name: 'Another statement'}).click()
    assert.equal(await tabs.count(), 8)
    assert.equal(await page.getByRole('button', {name: 'Another statement'}).count(), 0)
    // A link opens its statement beside those that are there.
    await page.goto(at('sql?sql=' + encodeURIComponent("SELECT 'three' AS a")))
    await until(page, 'the statement of the link', async () => /'three'/.test(await statement(page).innerText()))
  },
  async 'an answer as a chart'() {
    const page = await open(at('sql'))
    await write(page, 'SELECT service, count() AS n FROM sql_logs GROUP BY service ORDER BY service')
    await execute(page)
    await page.getByText(/^2 rows in /).waitFor()
    await page.getByRole('button', {name: 'bars', exact: true}).click()
    await page.locator('.answer-chart canvas').waitFor()
    await page.getByRole('button', {name: 'Numbers'}).click()
    assert.deepEqual((await page.getByRole('table', {name: 'Numbers of Chart of the answer'}).getByRole('cell').allInnerTexts()), ['bank', '30', 'shop', '30'])
    await write(page, "SELECT 'a' AS text")
    await execute(page)
    await page.getByText('A chart needs a column of numbers beside its times or names.').waitFor()
  },
}

await run(scenarios)
