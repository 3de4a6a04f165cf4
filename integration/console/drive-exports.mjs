// Exports of all that matches: the file that a person downloads has what almanac query prints, line by line.
import assert from 'node:assert/strict'
import {execFile} from 'node:child_process'
import {readFile} from 'node:fs/promises'
import {promisify} from 'node:util'
import {declare, iso, lines} from './example.mjs'
import {at, found, open, run, told} from './page.mjs'

const topic = 'export_' + Date.now().toString(36) // another each time, so that the script may run twice on one Almanac
const most = 1000 // events of one answer of almanac query, and of a page of an export
const count = 1400
const where = "service in ('shop', 'bank')"

/** queried are the lines of almanac query for all that matches, the newest first: of two answers, one from each end. */
async function queried(as, n) {
  const query = async (...flags) => (await promisify(execFile)(told.program, ['query', topic, '--where', where, '-o', as, ...flags, '--data', told.data], {maxBuffer: 64 << 20})).stdout.split('\n').filter(Boolean)
  const newest = await query('--limit', String(most))
  const oldest = await query('--limit', String(n - most), '--order', 'asc')
  return as === 'csv' ? [...newest, ...oldest.slice(1).reverse()] : [...newest, ...oldest.reverse()]
}

async function downloaded(page, name) {
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', {name, exact: true}).click()])
  return {name: file.suggestedFilename(), lines: (await readFile(await file.path(), 'utf8')).split('\n').filter(Boolean)}
}

const shown = async () => {
  const page = await open(at(`search?topic=${topic}&from=all&where=${encodeURIComponent(where)}`))
  await found(page, '200 of 1,120 events')
  return page
}
const matching = count * 4 / 5

const scenarios = {
  async 'NDJSON of all that matches'() {
    await declare(topic, 'log')
    const begin = Date.now() - 7200_000
    await lines(topic, Array.from({length: count}, (_, i) => ({ts: iso(begin + i * 1000), level: i % 9 ? 'info' : 'error', service: ['shop', 'bank', 'shop', 'bank', 'mail'][i % 5], user_id: 'u-' + (i % 7), message: i % 10 ? `order ${i}, "placed"` : `<b>${i}</b>; \u202Eodd`, attributes: {n: String(i), text: 'a, "b"'}})))
    const file = await downloaded(await shown(), 'Export')
    assert.equal(file.name, topic + '.ndjson')
    assert.equal(file.lines.length, matching)
    assert.deepEqual(file.lines, await queried('ndjson', matching))
  },
  async 'CSV of all that matches'() {
    const file = await downloaded(await shown(), 'CSV')
    assert.equal(file.name, topic + '.csv')
    assert.equal(file.lines.length, matching + 1) // the names, once
    assert.deepEqual(file.lines, await queried('csv', matching))
  },
}

await run(scenarios)
