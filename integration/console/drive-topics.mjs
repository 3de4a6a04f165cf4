// A topic is changed: what a change does is shown first, what takes events waits for a word that is typed, and a refusal says why.
import assert from 'node:assert/strict'
import {ask, declare, iso, lines} from './example.mjs'
import {at, open, openAt, run, until} from './page.mjs'

const topic = 'changed_' + Date.now().toString(36) // another each time, so that the script may run twice on one Almanac
const own = () => ask('GET', '/v1/topics/' + topic)
const card = (page) => page.getByRole('region', {name: topic, exact: true})
const form = (page) => page.getByRole('form', {name: 'Change ' + topic})
const effect = (page) => page.getByRole('region', {name: `What changing ${topic} does`})
const field = (page, name) => form(page).getByRole('textbox', {name})
const look = (page) => form(page).getByRole('button', {name: 'What would this do?'}).click()

async function changing(page) {
  await card(page).getByRole('button', {name: 'Change ' + topic}).click()
  await form(page).waitFor()
  return page
}

const scenarios = {
  async 'a topic is created, and a refusal is said at its place'() {
    const page = await openAt('topics')
    const created = page.getByRole('region', {name: 'New topic'})
    const create = async (name, kind) => {
      await created.getByRole('textbox', {name: 'name'}).fill(name)
      await created.getByRole('combobox', {name: 'kind'}).selectOption(kind)
      await created.getByRole('button', {name: 'Create'}).click()
    }
    await create('No topic!', 'log')
    await created.getByText(/No topic!/).waitFor()
    await create(topic + '_m', 'metric')
    await created.getByText(topic + '_m created').waitFor()
    await page.getByRole('region', {name: topic + '_m', exact: true}).getByText('metric', {exact: true}).waitFor()
    assert.equal((await ask('GET', `/v1/topics/${topic}_m`)).kind, 'metric')
    await create(topic + '_m', 'metric') // and would have the options of a new one
    await created.getByText(`A topic ${topic}_m exists already.`).waitFor()
    await create(topic + '_n', 'log')
    await created.getByRole('link', {name: 'How to send events'}).click()
    await page.getByRole('combobox', {name: 'Topic'}).waitFor()
    await until(page, 'the new topic', async () => (await page.getByRole('combobox', {name: 'Topic'}).inputValue()) === topic + '_n')
    const reads = await open(at('topics'))
    await reads.getByRole('textbox', {name: 'name'}).fill(topic + '_o')
    await reads.getByRole('button', {name: 'Create'}).click()
    await reads.getByText(/this needs a token with the role admin/).waitFor()
  },
  async 'fields, rules and rotation, with their effect first'() {
    await declare(topic, 'log')
    await ask('PUT', '/v1/topics/' + topic, {kind: 'log', keep_days: 90})
    await lines(topic, Array.from({length: 40}, (_, i) => ({ts: iso(Date.now() - i * 60_000), message: 'm' + i, attributes: {ip: '203.0.113.' + i, status: '200'}})))
    const page = await changing(await openAt('topics'))
    assert.equal(await field(page, 'keep for days').inputValue(), '90')
    await look(page)
    await effect(page).getByText(`${topic} would stay unchanged`).waitFor()
    assert.equal(await effect(page).getByRole('button').count(), 0)
    await field(page, 'Privacy rules').fill('attributes.ip: truncate_ip')
    await effect(page).waitFor({state: 'detached'}) // it was of another change
    await field(page, 'More fields').fill('status:int64')
    await field(page, 'a shard ends at rows').fill('5000')
    await field(page, 'keep for days').fill('400')
    await look(page)
    await effect(page).getByText(`${topic} would be changed`).waitFor()
    const rows = await effect(page).getByRole('table', {name: 'differs'}).getByRole('row').evaluateAll((all) => all.map((r) => [...r.children].map((c) => c.textContent)))
    assert.deepEqual(rows.find(([name]) => name === 'kept'), ['kept', '90 days', '400 days'])
    assert.deepEqual(rows.find(([name]) => name === 'fields')?.[2], 'status')
    assert.deepEqual(rows.find(([name]) => name === 'privacy')?.[2], 'attributes.ip: truncate_ip')
    await effect(page).getByText('attributes.ip: truncate_ip. Of the events of the last day 40 have it.').waitFor()
    assert.equal((await own()).keep_days, 90) // nothing was changed
    await effect(page).getByRole('button', {name: 'Apply'}).click()
    await effect(page).getByText(`${topic} changed`).waitFor()
    await card(page).getByText('400 days').first().waitFor()
    await card(page).locator('details').getByRole('cell', {name: 'status', exact: true}).waitFor()
    const now = await own()
    assert.deepEqual([now.keep_days, now.rotate.rows, now.fields.map((f) => `${f.name}:${f.type}`), now.pii.map((p) => p.field + ':' + p.rule)], [400, 5000, ['status:int64'], ['attributes.ip:truncate_ip']])
  },
  async 'a shorter retention says what goes, and waits for the name of the topic'() {
    const page = await changing(await openAt('topics'))
    await field(page, 'keep for days').fill('30')
    await field(page, 'anonymise after days').fill('7')
    await field(page, 'fields to clear').fill('user_id, attributes.ip')
    await look(page)
    await effect(page).getByText(/^drop: 40 events in (one shard|\d+ shards), .*Nothing brings them back\./).waitFor()
    await effect(page).getByText(/^anonymise: 40 events in /).waitFor()
    const apply = effect(page).getByRole('button', {name: 'Apply'})
    await effect(page).getByRole('textbox').fill('something else')
    assert.ok(await apply.isDisabled())
    assert.equal((await own()).keep_days, 400)
    await effect(page).getByRole('textbox').fill(topic)
    await apply.click()
    await effect(page).getByText(`${topic} changed`).waitFor()
    const now = await own()
    assert.deepEqual([now.keep_days, now.anonymise, now.rotate.rows], [30, {after_days: 7, fields: ['user_id', 'attributes.ip']}, 5000])
  },
  async 'what another changed meanwhile is in the effect'() {
    const page = await changing(await openAt('topics'))
    await ask('PUT', `/v1/topics/${topic}?yes=true`, {...await own(), keep_days: 60})
    await until(page, 'what another changed', async () => {
      await field(page, 'cold volume after days').fill('')
      await look(page)
      return effect(page).getByRole('row').filter({hasText: 'kept'}).getByText('60 days').waitFor({timeout: 10_000}).then(() => true, () => false)
    })
  },
  async 'what is typed stays when the topics are loaded again'() {
    const page = await openAt('search?topic=' + topic)
    let come
    const late = new Promise((done) => (come = done))
    await page.route(/\/v1\/topics$/, (route) => late.then(() => route.continue()))
    await page.getByRole('navigation').getByRole('link', {name: 'Topics', exact: true}).click()
    await changing(page)
    await field(page, 'keep for days').fill('77')
    await field(page, 'More fields').fill('later:int64')
    await ask('PUT', `/v1/topics/${topic}?yes=true`, {...await own(), keep_days: 61})
    come()
    await card(page).getByText('61 days').first().waitFor()
    assert.deepEqual([await field(page, 'keep for days').inputValue(), await field(page, 'More fields').inputValue()], ['77', 'later:int64'])
  },
  async 'a refusal says why'() {
    const page = await changing(await openAt('topics'))
    await field(page, 'keep for days').fill('-4')
    await look(page)
    await card(page).getByText(/keep_days is -4/).waitFor()
    await field(page, 'keep for days').fill('30')
    await field(page, 'More fields').fill('other:text')
    await look(page)
    await card(page).getByText(/it must be one of/).waitFor()
    assert.equal(await effect(page).count(), 0)
    await field(page, 'More fields').fill('')
    await field(page, 'keep for days').fill('a month')
    await look(page)
    await until(page, 'why a word is not a number', async () => (await card(page).locator('.empty-title').innerText().catch(() => '')).includes('keep_days'))
  },
  async 'it needs a token, and the page says of which role'() {
    const page = await changing(await open(at('topics')))
    await look(page)
    await card(page).getByText(/this needs a token with the role admin/).waitFor()
  },
}

await run(scenarios)
