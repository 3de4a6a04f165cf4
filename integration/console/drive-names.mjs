// Names and values that would change what a person reads: characters that turn the direction of a text, or draw nothing, are
// shown by their numbers wherever they are. And filters that such values, and those with words of the language, are part of.
import assert from 'node:assert/strict'
import {declare} from './example.mjs'
import {at, filter, found, list, offered, open, rows, run, send, settled, statement, told, until, write} from './page.mjs'

const topic = 'names_' + Date.now().toString(36) // another each time, so that the script may run twice on one Almanac
const turned = '\u202Egpj.exe'
const seen = 'U+202Egpj.exe'
const both = "this AND that's"
const raw = /[\u202E\u200B]/

const scenarios = {
  async 'names and values in every part of a search'() {
    await declare(topic, 'log')
    await send([{service: turned, level: 'in\u200Bfo', message: 'of names', attributes: {[turned]: 'x', to: both}}, {service: 'shop', message: 'plain', attributes: {to: 'nobody'}}], topic)
    const page = await open(at(`search?topic=${topic}&from=all&by=service&facets=service,${encodeURIComponent(`attributes['${turned}']`)}&cols=${encodeURIComponent(`attributes['${turned}']`)}`))
    await found(page, '2 of 2 events')
    await rows(page).filter({hasText: 'of names'}).getByText(seen, {exact: true}).first().waitFor()
    const facets = page.getByRole('complementary', {name: 'Fields'})
    await facets.getByText(`['${seen}']`).first().waitFor()
    const histogram = page.getByRole('region', {name: 'Events over time, 2 in all'})
    await histogram.getByRole('button', {name: seen}).waitFor()
    await histogram.locator('.chart').hover()
    await page.locator('.heads').getByText(seen).waitFor()
    await rows(page).filter({hasText: 'of names'}).click()
    const drawer = page.getByRole('complementary', {name: 'Event'})
    await drawer.locator('dt').getByText(seen).waitFor()
    await page.keyboard.press('Escape')
    let wait = 3_000 // twice as much each time: values that do not come in time are asked for with the next key
    await until(page, 'the value', async () => {
      await filter(page).fill('')
      await filter(page).fill("service = '")
      wait *= 2
      return page.getByRole('option', {name: seen}).waitFor({timeout: wait}).then(() => true, () => false)
    })
    await offered(page, facets.getByRole('combobox', {name: 'Add a field'}))
    assert.doesNotMatch(await page.locator('main').innerText(), raw)
    assert.doesNotMatch(await page.locator('main').evaluate((e) => [...e.querySelectorAll('[title], option')].map((o) => (o.title ?? '') + o.textContent).join()), raw)
  },
  async 'names in an answer of SQL, and in what the server says'() {
    const page = await open(at('sql?topic=' + topic))
    await write(page, `SELECT 1 AS \`${turned}\``)
    await page.keyboard.press('Control+Enter')
    await page.getByRole('columnheader', {name: seen}).waitFor()
    await write(page, `SELECT \`nope${turned}\` FROM ${topic}`)
    await page.keyboard.press('Control+Enter')
    await page.locator('main').getByRole('alert').getByText(seen).first().waitFor()
    await statement(page).waitFor()
    await page.goto(at(`search?topic=${topic}&from=all&where=${encodeURIComponent(`nope = '${turned}'`)}`))
    await page.locator('.filter').getByRole('alert').waitFor()
    assert.doesNotMatch(await page.locator('main').innerText(), raw)
  },
  async 'a value with words of the language is chosen, taken back and turned round'() {
    const page = await open(at(`search?topic=${topic}&from=all&facets=attributes.to`))
    await found(page, '2 of 2 events')
    const only = page.getByRole('button', {name: `Only attributes.to ${both}`})
    const without = page.getByRole('button', {name: `Without attributes.to ${both}`})
    const has = (text) => until(page, 'the filter ' + text, async () => (await filter(page).inputValue()) === text)
    await only.click()
    await has("attributes.to = 'this AND that\\'s'")
    await found(page, '1 of 1 events')
    await only.click()
    await has('')
    await found(page, '2 of 2 events')
    await only.click()
    await found(page, '1 of 1 events')
    await without.click()
    await has("attributes.to != 'this AND that\\'s'")
    await found(page, '1 of 1 events')
    await list(page).getByText('plain').waitFor()
    await page.goto(at(`search?topic=${topic}&from=all&facets=attributes.to&where=${encodeURIComponent("message = 'plain' or message = 'of names'")}`))
    await found(page, '2 of 2 events')
    await only.click()
    await has("(message = 'plain' or message = 'of names') AND attributes.to = 'this AND that\\'s'")
    await found(page, '1 of 1 events')
    await only.click()
    await has("(message = 'plain' or message = 'of names')")
    for (const where of ["message = 'plain'or message='of names'", "(message = 'plain')OR(message = 'of names')"]) { // no space is needed
      await page.goto(at(`search?topic=${topic}&from=all&facets=attributes.to&where=${encodeURIComponent(where)}`))
      await has(where) // what was found before may be the same
      await settled(page)
      await found(page, '2 of 2 events')
      await only.click()
      await has(`(${where}) AND attributes.to = 'this AND that\\'s'`)
      await found(page, '1 of 1 events')
    }
  },
  async 'a mistake is underlined after a second Enter too'() {
    const page = await open(at(`search?topic=${topic}&from=all`))
    await found(page, '2 of 2 events')
    for (const text of ["nope = 'x' ", "nope = 'x'  "]) {
      await filter(page).fill(text)
      await page.keyboard.press('Enter')
      await until(page, 'the word underlined', async () => (await page.locator('.filter u').allInnerTexts()).join() === 'nope')
    }
  },
  async 'lines that are wrapped stay so by the address'() {
    const page = await open(at(`search?topic=${topic}&from=all`))
    const wrap = page.getByRole('button', {name: 'Wrap', pressed: true})
    await found(page, '2 of 2 events')
    await page.keyboard.press('w')
    await wrap.waitFor()
    assert.match(page.url(), /wrap=1/)
    await page.reload()
    await wrap.waitFor()
    await wrap.click()
    await wrap.waitFor({state: 'detached'})
  },
  async 'a link to an event that is not there says so, and why bars and fields are not'() {
    const page = await open(at(`search?topic=${topic}&from=all&event=2026-01-01T00:00:00.000000000Z/00000000-0000-7000-8000-000000000000`))
    const drawer = page.getByRole('complementary', {name: 'Event'})
    await drawer.getByRole('status').waitFor()
    await drawer.getByRole('button', {name: 'Close'}).click()
    await drawer.waitFor({state: 'detached'})
    for (const of of ['facets', 'histogram']) await page.route(new RegExp(`/${of}\\?`), (route) => route.fulfill({status: 503, contentType: 'application/json', body: '{"error":{"code":"busy","message":"no time for ' + of + '"}}'}))
    await page.reload()
    await page.getByRole('complementary', {name: 'Fields'}).getByText('no time for facets').waitFor()
    await page.getByRole('region', {name: /^Events over time/}).getByText('no time for histogram').waitFor()
    await page.unroute(/facets/)
    await page.unrouteAll()
    await page.getByRole('complementary', {name: 'Fields'}).getByRole('button', {name: 'Try again'}).click({timeout: 5_000}).catch(() => undefined) // it tries by itself too
    await page.getByRole('button', {name: /^Only service shop/}).waitFor()
  },
  async 'days begin at midnight of the page'() {
    const page = await open('about:blank', {timezoneId: 'Asia/Tokyo'})
    const asked = page.waitForRequest(/\/histogram\?.*zone=Asia%2FTokyo/)
    await page.goto(at(`search?topic=${topic}&from=-60d`))
    const {buckets} = await (await (await asked).response()).json()
    assert.match(buckets[1].ts, /T15:00:00/)
    const step = page.getByRole('combobox', {name: 'Length of a bar'})
    await until(page, 'bars of a day', async () => (await step.locator('option:checked').innerText()) === 'each 1d')
    const ofUTC = () => page.waitForResponse((r) => /\/histogram\?/.test(r.url()) && !/zone=/.test(r.url()) && r.ok())
    const utc = ofUTC()
    await page.getByRole('button', {name: 'Local'}).click()
    await utc
    // A server that knows nothing of the zone has the days of UTC.
    await page.route(/zone=Asia/, (route) => route.continue({url: route.request().url().replace('Asia%2FTokyo', 'Nowhere%2FAt')}))
    const instead = ofUTC()
    await page.getByRole('button', {name: 'UTC'}).click()
    await instead
    await settled(page)
    assert.equal(await page.getByText(/time zone/).count(), 0)
  },
  async 'where a shard is'() {
    const page = await open(`${told.base}/console/#token=${told.token}`)
    await page.goto(at('proof'))
    await page.getByRole('region', {name: 'Shards: ' + topic}).getByRole('button', {name: /active/}).first().click()
    await page.getByText('volume', {exact: true}).waitFor()
  },
}

await run(scenarios)
