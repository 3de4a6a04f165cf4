// Real files, where there are some: records of many fields, of many lines, of 30 KB, and bytes that are not UTF-8, each
// shown whole.
import assert from 'node:assert/strict'
import {execFile} from 'node:child_process'
import {existsSync} from 'node:fs'
import {readFile} from 'node:fs/promises'
import {join} from 'node:path'
import {promisify} from 'node:util'
import {gunzipSync} from 'node:zlib'
import {declare} from './example.mjs'
import {at, open, rows, run, settled, told, until} from './page.mjs'

const salt = Date.now().toString(36) // topics are others each time, so that the script may run twice on one Almanac

/** sent sends a file to a topic of its own by the command line, and returns the topic and the file. */
async function sent(name, ...flags) {
  const path = join(told.shared, name)
  const topic = name.replace(/\W.*/, '') + '_' + name.split(/\W/)[1] + '_' + salt
  await declare(topic, 'log')
  await promisify(execFile)(told.program, ['send', topic, path, ...flags, '--data', told.data])
  const file = await readFile(path)
  return {topic, file: name.endsWith('.gz') ? gunzipSync(file) : file}
}

/** eventOf opens the one event that a filter finds. */
async function eventOf(topic, where) {
  const page = await open(at(`search?topic=${topic}&from=all&where=${encodeURIComponent(where)}`))
  const drawer = page.getByRole('complementary', {name: 'Event'})
  let patience = 3_000 // twice as much each time: the machine may be slow
  await until(page, 'one event that is stored', async () => { // it may not be found at first
    await rows(page).first().click({timeout: patience}).catch(() => undefined)
    if (await drawer.getByText('stored', {exact: true}).waitFor({timeout: patience}).then(() => true, () => false)) return true
    patience *= 2
    await page.reload()
    await settled(page)
    return false
  })
  assert.equal(await rows(page).count(), 1)
  return drawer
}

/** leaves are the fields of an object as an event has them: names of nested ones joined by dots, arrays as JSON. */
const leaves = (value, name = '') => (value && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length ? Object.entries(value).flatMap(([n, v]) => leaves(v, name ? `${name}.${n}` : n)) : [[name, value]])

/** fields are those that the drawer shows: a folded value is unfolded. */
async function fields(drawer) {
  return Object.fromEntries(await drawer.locator('.fields:not(.place) > div').evaluateAll((all) => all.map((d) => [d.querySelector('dt').textContent, (d.querySelector('.folded pre') ?? d.querySelector('.text')).textContent])))
}

/** same fails where a field of a record is not shown, or another value. What an event has no attribute left for is one of them, as JSON. */
function same(shown, record, but) {
  let n = 0
  const rest = new Map(shown.almanac_rest ? leaves(JSON.parse(shown.almanac_rest)) : [])
  for (const [name, value] of leaves(record)) {
    if (but.includes(name) || value === null || value === '') continue
    n++
    if (rest.has(name)) {
      assert.deepEqual(rest.get(name), value, name)
      continue
    }
    assert.ok(name in shown, `${name} is not shown; ${Object.keys(shown)} are`)
    if (typeof value === 'object') assert.deepEqual(JSON.parse(shown[name]), value)
    else assert.equal(shown[name], String(value).replaceAll('\r\n', '\n'), name) // a line ends as lines do
  }
  assert.ok(n > 5)
}

const longest = (lines) => lines.reduce((a, b) => (b.length > a.length ? b : a), '')
const lines = (file) => file.toString().split('\n').filter(Boolean)

const real = {
  async 'all fields of an entry of CloudTrail'() {
    const {topic, file} = await sent('audit-cloudtrail.jsonl.gz', '--format', 'ndjson', '--ts-field', 'eventTime', '--user-field', 'userIdentity.userName')
    const record = JSON.parse(longest(lines(file)))
    const shown = await fields(await eventOf(topic, `attributes.eventID = '${record.eventID}'`))
    same(shown, record, ['eventTime', 'userIdentity.userName'])
    assert.equal(shown.user_id, record.userIdentity.userName)
  },
  async 'the longest event of GitHub'() {
    const {topic, file} = await sent('events-github.jsonl.gz', '--format', 'ndjson', '--ts-field', 'created_at', '--user-field', 'actor.login')
    const line = longest(lines(file))
    assert.ok(line.length > 10_000)
    const record = JSON.parse(line)
    same(await fields(await eventOf(topic, `attributes.id = '${record.id}'`)), record, ['type', 'created_at', 'actor.login', 'id'])
  },
  async 'a record of Kafka of many lines'() {
    const {topic, file} = await sent('app-kafka-broker0-server.log', '--multiline', '^\\[', '--ts-format', 'log4j')
    const record = longest(file.toString().split(/\n(?=\[)/)).trimEnd()
    assert.ok(record.split('\n').length > 10)
    const page = await open(at(`search?topic=${topic}&from=all&where=${encodeURIComponent(`message = '${record.replace(/[\\']/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}'`)}`))
    await until(page, 'the record', async () => {
      await settled(page)
      if (await rows(page).count()) return true
      await page.reload()
      return false
    })
    await rows(page).first().click()
    const whole = page.getByRole('complementary', {name: 'Event'}).locator('.whole')
    assert.equal(await whole.evaluate((e) => e.textContent), record)
  },
  async 'bytes that are not UTF-8'() {
    const {topic} = await sent('odd-invalid-utf8.log', '--multiline', '^\\d{4}-', '--ts-format', '2006-01-02T15:04:05')
    const drawer = await eventOf(topic, "message contains 'tiptop'")
    assert.match(await drawer.locator('.whole').innerText(), /<node>\?{11}\ufffd+\?\?<\/node>[^]*<\/tiptop>/)
    assert.equal((await fields(drawer)).almanac_invalid_utf8, 'message')
  },
}

const here = told.shared && existsSync(join(told.shared, 'audit-cloudtrail.jsonl.gz'))
await run(here ? real : {async 'skipped: no real files are here'() {
  const page = await open(at('health'))
  await page.getByRole('heading', {name: 'Health'}).waitFor()
}})
