// What there is to look at: every page with made-up data, in the state in which a person would look at it.
import {ask, declare, documents, logs, meters, metrics, timers, trails} from './example.mjs'
import {until} from './page.mjs'

const now = Date.now()
const chart = (c) => ({shape: 'line', ...c})
const charts = encodeURIComponent(JSON.stringify([
  chart({source: 'search', shape: 'bar', topic: 'shop', by: 'level', title: 'Events by level'}),
  chart({source: 'metric', topic: 'load', metric: 'latency_ms', align: 'mean', reduce: 'mean', by: 'service', title: 'Latency, ms'}),
  chart({source: 'search', shape: 'area', topic: 'shop', by: 'service', title: 'Events by service'}),
  chart({source: 'sql', shape: 'bar', title: 'Failed charges by provider address', text: "SELECT extract(message, '203[.0-9]+') AS address, count() AS failed FROM shop WHERE service = 'payment' AND level = 'error' GROUP BY address ORDER BY failed DESC LIMIT 12"}),
]))
const statement = encodeURIComponent("SELECT service, level, count() AS events, round(quantile(0.95)(toFloat64OrNull(attributes['duration_ms'])), 1) AS p95_ms, uniq(user_id) AS users\nFROM shop\nWHERE ts > now() - INTERVAL 2 HOUR\nGROUP BY service, level\nORDER BY events DESC")
const troubles = `search?topic=shop&from=-2h&where=${encodeURIComponent("level in ('error', 'warn')")}`

/** firstRow opens the first event of the list. */
export const firstRow = async (page) => {
  await page.getByRole('grid', {name: 'Events'}).getByRole('row').first().click()
  await page.getByRole('complementary', {name: 'Event'}).getByRole('button', {name: 'Copy link'}).waitFor()
}
const counted = async (page) => {
  await page.getByRole('textbox', {name: 'Users'}).fill('u-7')
  await page.getByRole('button', {name: 'Count what would go'}).click()
  await page.getByText('would go; nothing was changed').waitFor({timeout: 600_000}) // topic after topic
}
const answered = async (page) => {
  await page.getByRole('button', {name: 'Run', exact: true}).click()
  await page.getByRole('table', {name: 'Answer'}).waitFor()
}
const proven = async (page) => {
  await page.getByRole('button', {name: 'Verify now'}).click()
  await page.getByText(/^Proven .* ago$/).waitFor()
}

// Each page: where it is, and what a person does there before it is looked at.
export const pages = {
  search: [troubles],
  event: [troubles, firstRow],
  tail: ['tail?topic=shop', async (page) => {
    await page.getByText('Connected. Waiting for events.').waitFor()
    await logs('shop', now)
    const live = page.getByRole('grid', {name: 'Live events'})
    await live.getByRole('row').first().waitFor()
    let had
    await until(page, 'no more rows', async () => {
      const was = had
      had = await live.getAttribute('aria-rowcount')
      await page.waitForTimeout(1000)
      return had === was
    })
  }],
  sql: ['sql?topic=shop&sql=' + statement, answered],
  proof: ['proof', proven],
  erase: ['erase', counted],
  topics: ['topics'],
  change: ['topics', async (page) => {
    await page.getByRole('button', {name: 'Change shop', exact: true}).click()
    const form = page.getByRole('form', {name: 'Change shop'})
    await form.getByRole('textbox', {name: 'keep for days'}).fill('30')
    await form.getByRole('button', {name: 'What would this do?'}).click()
    await page.getByText('would be changed').waitFor()
  }],
  health: ['health', (page) => page.getByRole('region', {name: 'Inputs'}).waitFor()],
  send: ['send'],
  charts: ['charts?from=-2h&c=' + charts],
  documents: ['documents?topic=customers&doc=c-024'],
  timers: ['timers?topic=callbacks&group=reminders&timer=seat-42'],
  trails: ['trails?topic=trail&scope=projects/shop&of=roles/billing-reader', async (page) => {
    await page.getByRole('main').getByRole('table', {name: 'Changes'}).getByRole('row').nth(1).click()
    await page.getByRole('complementary', {name: 'Change'}).waitFor()
  }],
  usage: ['usage?topic=usage', async (page) => {
    await page.getByRole('main').getByRole('table', {name: 'Bills'}).getByRole('row').nth(1).click()
    await page.getByRole('complementary', {name: 'Bill'}).getByRole('img', {name: 'By day'}).waitFor()
  }],
  nothing: ["search?topic=shop&from=-2h&where=service+%3D+'nope'"],
  mistake: ["search?topic=shop&from=-2h&where=servce+%3D+'nope'"],
}


/** fill makes the topics of the pages, and what is in them. */
export async function fill() {
  for (const [topic, kind] of [['shop', 'log'], ['load', 'metric'], ['usage', 'meter'], ['customers', 'document'], ['callbacks', 'timer'], ['trail', 'audit']]) await declare(topic, kind)
  await Promise.all([logs('shop', now), metrics('load', now), meters('usage', now), documents('customers'), timers('callbacks', now), trails('trail', now)])
  await ask('PUT', '/v1/alerts/rules/shop', {topic: 'shop', rules: [{alert: 'PaymentsFail', where: "service = 'payment' AND level = 'error'", window: '2h', condition: '>= 20', annotations: {summary: 'charges are refused'}}]})
}
