// The pages of kinds: documents, timers, trails and usage, each of a topic of its own that example.mjs fills.
import assert from 'node:assert/strict'
import {ask, declare, documents, iso, lines, meters, timers, trails} from './example.mjs'
import {at, measured, open, patience, run, settled, until} from './page.mjs'

const main = (page) => page.getByRole('main')
const table = (page, name) => main(page).getByRole('table', {name, exact: true})
const cells = async (row) => (await row.getByRole('cell').allInnerTexts()).map((t) => t.trim())
const drawer = (page, name) => page.getByRole('complementary', {name, exact: true})

/** beside are the lines of two values beside each other that differ. */
const beside = (page, label) => page.getByRole('table', {name: label}).locator('.beside-row:not(.same):not(.head)').evaluateAll((rows) => rows.map((r) => [...r.children].map((c) => c.textContent.trim())))

const scenarios = {
  async 'pages of kinds are named where there is a topic'() {
    const page = await open(at('search?topic=app&from=all'))
    const named = page.getByRole('navigation').getByRole('link', {name: 'Usage'})
    await page.getByRole('link', {name: 'Search', exact: true}).waitFor()
    assert.equal(await named.count(), 0)
    await page.goto(at('usage'))
    await page.getByText('No topic of kind meter is declared.').waitFor()
    await page.getByText('almanac topics apply usage --kind meter').waitFor()
    for (const [topic, kind] of [['shop_usage', 'meter'], ['shop_customers', 'document'], ['shop_timers', 'timer'], ['shop_trail', 'audit']]) await declare(topic, kind)
    await page.reload()
    await named.waitFor()
    for (const [to, said] of [['usage?topic=shop_usage', 'Nothing was used in this month or the one before.'], ['documents?topic=shop_customers', 'No documents are here.'], ['timers?topic=shop_timers', 'There are no groups of timers.'], ['trails?topic=shop_trail', 'No events are in this range.']]) {
      await page.goto(at(to))
      await page.getByText(said).waitFor()
    }
  },
  async 'documents by path, and two versions beside each other'() {
    await documents('shop_customers')
    const page = await open(at('documents?topic=shop_customers'))
    const list = table(page, 'Documents')
    await page.getByText('23 documents, the newest created first').waitFor() // one of 24 was removed
    await page.getByRole('textbox', {name: 'path'}).fill('se')
    await page.keyboard.press('Enter')
    await page.getByText('12 documents').waitFor()
    await page.getByRole('checkbox', {name: 'and below'}).click()
    await page.getByText('No documents are here.').waitFor() // none has exactly this path
    await page.getByRole('textbox', {name: 'path'}).fill('se/uppsala')
    await page.keyboard.press('Enter')
    await page.getByText('6 documents').waitFor()
    await list.getByRole('row').filter({hasText: 'c-024'}).click()
    const one = drawer(page, 'Document')
    await one.getByText('version 3, ').waitFor()
    assert.deepEqual(await beside(page, 'Difference'), [['"mail": "ops@c24.example",', '"mail": "it@c24.example",'], ['"phone": null', '"phone": "+43 1 555"'], ['"seats": 90,', '"seats": 96,'], ['', '"<b>bold</b> U+202Ename"']])
    await one.getByRole('radio', {name: 'from 1'}).click()
    await until(page, 'the limit among what differs', async () => JSON.stringify(await beside(page, 'Difference')).includes('requests_per_second'))
    await page.reload()
    await until(page, 'the same two versions', async () => JSON.stringify(await beside(page, 'Difference')).includes('requests_per_second'))
    await page.getByRole('textbox', {name: 'id', exact: true}).fill('c-003')
    await page.keyboard.press('Enter')
    await one.getByText('removed', {exact: true}).first().waitFor()
    assert.equal(await page.locator('main b b, main img').count(), 0)
    await page.keyboard.press('Escape')
  },
  async 'a document by keys'() {
    const page = await open(at('search?topic=app&from=all'))
    await page.getByRole('link', {name: 'Documents'}).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('d')
    await main(page).getByRole('combobox', {name: 'Topic'}).selectOption('shop_customers')
    await page.evaluate(() => document.activeElement.blur())
    await page.getByText('23 documents').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await drawer(page, 'Document').getByText('c-023').waitFor()
    await page.keyboard.press('k')
    await drawer(page, 'Document').getByText('c-024').waitFor()
    await page.keyboard.press('Escape')
    await drawer(page, 'Document').waitFor({state: 'detached'})
  },
  async 'timers by group and state, with the history of one'() {
    await timers('shop_timers')
    // Those of the paused group are late once they are due, and the one of loopback fails.
    for (const end = Date.now() + patience; ; await new Promise((next) => setTimeout(next, 100))) {
      const {groups} = await ask('GET', '/v1/timers?topic=shop_timers')
      if (groups.some((g) => g.overdue === 4) && groups.some((g) => g.failed === 1)) break
      assert.ok(Date.now() < end, JSON.stringify(groups))
    }
    const page = await open(at('timers?topic=shop_timers'))
    const groups = table(page, 'Groups')
    const mails = await until(page, 'the group', async () => (await groups.getByRole('row').filter({hasText: 'mails'}).count()) && cells(groups.getByRole('row').filter({hasText: 'mails'})))
    assert.deepEqual(mails.slice(0, 5), ['mails', '0', '–', '30', '0'])
    await groups.getByRole('button', {name: 'invoices: 4 late'}).click()
    await page.getByText('4 timers, by due time').waitFor()
    assert.equal(await table(page, 'Timers').getByRole('cell', {name: 'late', exact: true}).count(), 4)
    await page.getByRole('button', {name: 'All groups'}).click()
    await groups.getByRole('button', {name: 'reminders: 1 failed'}).click()
    await table(page, 'Timers').getByRole('row').filter({hasText: 'seat-42'}).click()
    const one = drawer(page, 'Timer')
    await one.getByText('"text": "<i>soon</i>"').waitFor()
    await until(page, 'each transition', async () => JSON.stringify((await one.getByRole('table', {name: 'History'}).getByRole('row').evaluateAll((rows) => rows.slice(1).map((r) => r.children[1].firstChild.textContent)))) === '["created","firing","failed"]')
    await one.getByText('timers_allow_cidrs').waitFor()
    await page.getByRole('combobox', {name: 'state'}).selectOption('pending')
    await page.getByText('6 timers, by due time').waitFor()
  },
  async 'a change with before and after'() {
    await trails('shop_trail')
    const page = await open(at('trails?topic=shop_trail'))
    await table(page, 'Scopes').getByRole('row').filter({hasText: 'projects/shop'}).click()
    await table(page, 'Resources').getByRole('row').filter({hasText: 'roles/billing-reader'}).click()
    await page.getByText('8 entries').waitFor()
    const rows = table(page, 'Changes').getByRole('row')
    assert.equal(await rows.filter({hasText: 'rolled back'}).count(), 1)
    await rows.nth(1).click()
    await drawer(page, 'Change').getByText('Its 2 events').waitFor()
    assert.deepEqual(await beside(page, 'Before and after'), [['', '"user-7"'], ['', '"note": "<img src=x onerror=alert(1)>",']])
    assert.equal(await page.locator('main img').count(), 0)
    await page.getByRole('combobox', {name: 'by', exact: true}).selectOption('open')
    await page.getByText('1 entries').waitFor()
    assert.match(await rows.nth(1).innerText(), /roles\/admin.*boris.*announced/s)
    await page.getByRole('combobox', {name: 'by', exact: true}).selectOption('actor')
    await page.getByRole('combobox', {name: 'actor'}).fill('cleo')
    await page.keyboard.press('Enter')
    await rows.filter({hasText: 'CreateKey'}).click()
    await drawer(page, 'Change').getByText('"id": "keys/export",').waitFor()
  },
  async 'whose usage grew most'() {
    await meters('shop_usage')
    const now = new Date() // on the first of a month it has no changes yet
    const month = now.getUTCDate() > 1 ? '' : '&month=' + iso(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1)).slice(0, 7)
    const page = await open(at('usage?topic=shop_usage' + month))
    const rows = table(page, 'Bills').getByRole('row')
    await until(page, 'six customers', async () => (await rows.count()) === 7)
    assert.equal((await cells(rows.nth(1)))[0], 'dogger') // the first is the one that grew most
    await rows.nth(1).click()
    const one = drawer(page, 'Bill')
    await one.getByRole('img', {name: 'By day'}).waitFor()
    await one.getByText('2,600,000,000').first().waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('combobox', {name: 'meter'}).selectOption('seats')
    await page.getByRole('combobox', {name: 'measure'}).selectOption('sum')
    await until(page, 'all seats of two months', async () => (await page.url()).includes('measure=sum') && (await rows.count()) === 7)
    await page.getByRole('combobox', {name: 'for each'}).selectOption('provider,customer')
    await until(page, 'providers too', async () => /eu-\w+ \/ \w+/.test(await rows.nth(1).innerText()))
  },
  async 'the growth that is shown is that of the bills'() {
    const now = new Date()
    const month = iso(Date.UTC(now.getUTCFullYear(), now.getUTCMonth())).slice(0, 10)
    await lines('shop_usage', [{ts: iso(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1)), type: 'rooms', space: 's', cause: 'a', delta: 4, user_id: 'whole'}, {ts: month + 'T00:00:00Z', type: 'rooms', space: 's', cause: 'b', delta: 2, user_id: 'whole'}])
    const page = await open(at('usage?topic=shop_usage&meter=rooms'))
    const rows = table(page, 'Bills').getByRole('row')
    await until(page, 'one customer', async () => (await rows.count()) === 2)
    assert.deepEqual((await cells(rows.nth(1))).slice(0, 6), ['whole', '4', '6', '+2', '+50\u2009%', '6'])
  },
  async 'what a change adds is seen beside a long cause'() {
    await lines('shop_usage', [{ts: iso(Date.now()), type: 'long', space: 'space-' + 's'.repeat(60), cause: 'cause-' + 'c'.repeat(120), delta: 12345, user_id: 'whole'}])
    const page = await open(at('usage?topic=shop_usage&meter=long&customer=whole&open=1'), {viewport: {width: 1280, height: 800}})
    const one = drawer(page, 'Bill')
    const added = one.getByRole('table', {name: 'Changes in the month'}).getByRole('cell', {name: '12,345', exact: true})
    await added.waitFor()
    const [cell, all] = [await measured(page, added), await one.boundingBox()]
    assert.ok(cell.x >= all.x && cell.x + cell.width <= all.x + all.width, JSON.stringify([cell, all]))
  },
  async 'pages of kinds in a narrow window'() {
    const page = await open(at('documents?topic=shop_customers'), {viewport: {width: 360, height: 700}})
    for (const to of ['documents?topic=shop_customers&doc=c-024', 'timers?topic=shop_timers&group=reminders&timer=seat-42', 'trails?topic=shop_trail&scope=projects/shop&of=roles/billing-reader', 'usage?topic=shop_usage']) {
      await page.evaluate((to) => (location.hash = '#/' + to), to)
      await main(page).getByRole('table').first().waitFor()
      await settled(page)
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${to} is wider than the window`)
    }
  },
}

await run(scenarios)
