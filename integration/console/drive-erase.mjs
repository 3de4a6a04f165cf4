// Erases users of topics, documents and timers by the page: once by the mouse, once by keys. What is typed is typed.
import assert from 'node:assert/strict'
import {execFile} from 'node:child_process'
import {existsSync} from 'node:fs'
import {join} from 'node:path'
import {promisify} from 'node:util'
import {at, call, open, run, send, told, until} from './page.mjs'

const almanac = (...args) => promisify(execFile)(told.program, [...args, '--data', told.data])
const verified = async (page) => {
  await page.getByRole('button', {name: 'Verify now'}).click()
  await page.getByText(/^Proven .* ago$/).waitFor()
  assert.match(await page.locator('dl.figures').innerText(), /missing\s+0/)
}
const count = async (topic, where) => JSON.parse(await call('GET', `/v1/topics/${topic}/count?where=${encodeURIComponent(where)}`, 'application/json')).count
const field = (page, name) => page.getByRole('textbox', {name, exact: true})
const row = (page, topic) => page.getByRole('region', {name: 'What would go'}).getByRole('row').filter({has: page.getByRole('checkbox', {name: `Erase in ${topic}`})})
// Names are others each time, so that the script may run twice on one Almanac.
const salt = Date.now().toString(36)
const [ada, bob, gone, hostile] = [`ada-${salt}`, `bob-${salt}`, `gone-${salt}`, `<b>u\u202E${salt}</b>`]

/** logins are those of a real auth.log where there is one. They are sent once. */
let loggedIn
const logins = () => (loggedIn ??= sendLogins())
async function sendLogins() {
  await call('GET', '/v1/topics/logins', 'application/json').catch(() => almanac('topics', 'apply', 'logins'))
  const real = join(told.shared ?? '', 'auth-syslog.log')
  if (told.shared && existsSync(real)) {
    await almanac('send', 'logins', real, '--ts-format', 'syslog', '--extract', 'for (?:invalid user )?(?P<login>\\S+) from (?P<ip>\\S+)', '--user-field', 'login')
    return ['elastic_user_0', 'root']
  }
  await send(Array.from({length: 400}, (_, i) => ({service: 'sshd', user_id: 'elastic_user_' + (i % 10), message: `Failed password ${i}`})), 'logins')
  return ['elastic_user_0', 'elastic_user_1']
}

const scenarios = {
  async 'one who may not erase is told the role'() {
    const page = await open(at('erase'))
    await page.getByText('this needs a token with the role operate').waitFor()
  },
  async 'a user of events, documents and timers, by mouse'() {
    await almanac('topics', 'apply', 'people', '--kind', 'document', '--user-field', 'owner')
    await almanac('topics', 'apply', 'calls', '--kind', 'timer')
    await almanac('topics', 'apply', 'orders')
    await send(Array.from({length: 60}, (_, i) => ({service: 'shop', user_id: i % 3 ? ada : bob, message: `order ${i}`})), 'orders')
    for (const [id, owner] of [['a' + salt, ada], ['b' + salt, bob]]) await call('PUT', `/v1/documents/people/${id}`, 'application/json', JSON.stringify({owner, name: id}))
    await call('PUT', '/v1/timers/callbacks/config?topic=calls', 'application/json', '{}')
    for (const [id, user] of [['t1' + salt, ada], ['t2' + salt, bob]]) await call('POST', '/v1/timers/callbacks?topic=calls', 'application/json', JSON.stringify({id, user_id: user, execute_at: new Date(Date.now() + 30 * 86400e3).toISOString(), callback_url: 'https://example.org/'}))
    const page = await open(`${told.base}/console/#token=${told.token}`)
    await page.getByRole('link', {name: 'Erase'}).click()
    await field(page, 'Users').fill(ada)
    await field(page, 'Reason').fill('asked by mail')
    // What is not stored yet is not counted: it is counted again until all of it is.
    await until(page, 'all that is of ada', async () => {
      await page.getByRole('button', {name: 'Count what would go'}).click()
      await page.getByText('would go; nothing was changed').waitFor()
      const rows = await Promise.all(['orders', 'people', 'calls'].map((t) => row(page, t).getByRole('cell').nth(1).innerText()))
      return rows[0] === '40' && rows[1] === '1' && /^[1-9]/.test(rows[2])
    })
    assert.equal(await row(page, 'app').getByRole('checkbox').isChecked(), false)
    const sure = page.getByRole('button', {name: 'Erase for good'})
    await page.getByLabel(/^To erase \d+ events for good, type/).fill(bob)
    assert.ok(await sure.isDisabled())
    await page.getByLabel(/^To erase \d+ events for good, type/).fill(ada)
    await sure.click()
    for (const topic of ['orders', 'people', 'calls']) {
      const record = page.getByRole('region', {name: `Record of an erasure ${topic}`})
      await record.getByText('Erased, and looked for: nothing is left').waitFor()
      assert.match(await record.innerText(), /asked by mail/)
    }
    assert.equal(await count('orders', `user_id = '${ada}'`), 0)
    assert.equal(await count('orders', `user_id = '${bob}'`), 20)
    assert.match(await call('GET', `/v1/documents/people/b${salt}`, 'application/json'), new RegExp(bob))
    await assert.rejects(call('GET', `/v1/documents/people/a${salt}`, 'application/json'))
    const timer = await call('GET', `/v1/timers/callbacks/t1${salt}?topic=calls`, 'application/json')
    assert.match(timer, /"state":"cancelled"/)
    assert.ok(!timer.includes(ada), timer)
    // The record is a link, and is printed without what is not of it.
    await page.reload()
    await page.getByRole('region', {name: 'Record of an erasure orders'}).getByText('Erased, and looked for').waitFor()
    await page.emulateMedia({media: 'print'})
    assert.equal(await page.getByRole('button', {name: 'Print'}).isVisible(), false)
    assert.ok(await page.getByRole('region', {name: 'Record of an erasure orders'}).isVisible())
    await page.emulateMedia({media: 'screen'})
    await page.getByRole('link', {name: 'Prove the rest'}).click()
    await verified(page)
    assert.ok(!page.url().includes(ada), 'a person is in the address: ' + page.url())
  },
  async 'a user of auth.log, by keys'() {
    const [user] = await logins()
    const page = await open(`${told.base}/console/#token=${told.token}`)
    await page.getByRole('button', {name: 'Token set'}).waitFor()
    const tabTo = async (name) => until(page, `the focus on ${name}`, async () => {
      const at = await page.evaluate(() => document.activeElement?.closest('label')?.textContent || document.activeElement?.getAttribute('aria-label') || document.activeElement?.textContent || '')
      if (name.test(at)) return true
      await page.keyboard.press('Tab')
      return false
    })
    await until(page, 'the greeting', () => page.url().includes('#/search'))
    await page.keyboard.press('g')
    await page.keyboard.press('e')
    await page.getByRole('heading', {name: 'Erase', exact: true}).waitFor()
    await tabTo(/^Users/)
    await page.keyboard.type(user)
    let held = 0
    await until(page, 'the events of ' + user, async () => {
      await tabTo(/^Count what would go/)
      await page.keyboard.press('Enter')
      await page.getByText('would go; nothing was changed').waitFor()
      held = await count('logins', `user_id = '${user}'`)
      return held > 0 && (await row(page, 'logins').getByRole('cell').nth(1).innerText()) === held.toLocaleString('en')
    })
    await tabTo(/^To erase/)
    await page.keyboard.type(user)
    await page.keyboard.press('Enter')
    const record = page.getByRole('region', {name: 'Record of an erasure logins'})
    await record.getByText('Erased, and looked for: nothing is left').waitFor()
    assert.equal(await count('logins', `user_id = '${user}'`), 0)
    await page.keyboard.press('g')
    await page.keyboard.press('p')
    await verified(page)
  },
  async 'a user of auth.log, by mouse'() {
    const [, user] = await logins()
    const page = await open(`${told.base}/console/#token=${told.token}`)
    await page.getByRole('button', {name: 'Token set'}).waitFor()
    await page.getByRole('link', {name: 'Erase'}).click()
    await field(page, 'Users').fill(user)
    let held = 0
    await until(page, 'the events of ' + user, async () => {
      await page.getByRole('button', {name: 'Count what would go'}).click()
      await page.getByText('would go; nothing was changed').waitFor()
      held = await count('logins', `user_id = '${user}'`)
      return held > 0 && (await row(page, 'logins').getByRole('cell').nth(1).innerText()) === held.toLocaleString('en')
    })
    await page.getByLabel(/^To erase [\d,]+ events for good, type/).fill(user)
    await page.getByRole('button', {name: 'Erase for good'}).click()
    await page.getByRole('region', {name: 'Record of an erasure logins'}).getByText('Erased, and looked for: nothing is left').waitFor()
    assert.equal(await count('logins', `user_id = '${user}'`), 0)
    await page.getByRole('link', {name: 'Prove the rest'}).click()
    await verified(page)
  },
  async 'a filter, and what a user is named is text'() {
    await send([{service: 'shop', user_id: hostile, message: 'x'}, {service: gone, message: 'y'}], 'orders')
    const page = await open(`${told.base}/console/#token=${told.token}`)
    await page.getByRole('link', {name: 'Erase'}).click()
    await field(page, 'Users').fill(hostile)
    await until(page, 'it is counted', async () => {
      await page.getByRole('button', {name: 'Count what would go'}).click()
      await page.getByText('would go; nothing was changed').waitFor()
      return (await row(page, 'orders').getByRole('cell').nth(1).innerText()) === '1'
    })
    await page.getByText(`type <b>uU+202E${salt}</b>`).waitFor()
    await page.getByRole('radio', {name: 'By a filter'}).click()
    await field(page, 'Filter').fill(`service = '${gone}' AND nope`)
    await page.getByRole('button', {name: 'Count what would go'}).click()
    await row(page, 'orders').getByText(/column \d+/).waitFor()
    await field(page, 'Filter').fill(`service = '${gone}'`)
    await page.getByRole('button', {name: 'Count what would go'}).click()
    await page.getByText('would go; nothing was changed').waitFor()
    assert.equal(await row(page, 'orders').getByRole('cell').nth(1).innerText(), '1')
    await page.getByLabel(/^To erase 1 events for good, type/).waitFor()
  },
}

await run(scenarios)
