// How to send: each snippet of each kind of topic is run by a shell as it is pasted, and what it sends arrives.
import assert from 'node:assert/strict'
import {execFile} from 'node:child_process'
import {mkdtemp, rm, writeFile} from 'node:fs/promises'
import {tmpdir} from 'node:os'
import {delimiter, dirname, join} from 'node:path'
import {promisify} from 'node:util'
import {ask, declare} from './example.mjs'
import {at, open, run, send, told, until} from './page.mjs'

const topic = 'sent_' + Date.now().toString(36) // another each time, so that the script may run twice on one Almanac
const arriving = (page) => page.getByRole('grid', {name: 'Arriving'})
const kinds = {log: ['curl', 'almanac send', 'A file', 'OpenTelemetry', 'Loki clients', 'Elasticsearch clients', 'syslog'], metric: ['curl', 'almanac send', 'OpenTelemetry'], meter: ['curl', 'almanac send', 'CSV'], audit: ['curl', 'almanac send'], document: ['curl'], timer: ['curl']}

/** pasted runs a text by shells, where a file server.log is. */
async function pasted(text) {
  const dir = await mkdtemp(join(tmpdir(), 'snippet-'))
  await writeFile(join(dir, 'server.log'), 'a line of a file\n')
  const env = {...process.env, ALMANAC_TOKEN: told.token, PATH: dirname(told.program) + delimiter + process.env.PATH}
  const said = []
  for (const shell of ['sh', 'bash']) said.push(await promisify(execFile)(shell, ['-c', text], {cwd: dir, env}).then(({stdout, stderr}) => stdout + stderr))
  await rm(dir, {recursive: true})
  return said.join('\n')
}

/** shown opens the page of a topic, and waits until what arrives is shown. */
async function shown(of) {
  const page = await open(at('send?topic=' + of))
  await page.getByRole('region', {name: 'Arriving'}).getByText('Connected. Waiting for events.').waitFor()
  return page
}

/** text is the snippet below a tab. */
async function text(page, tab) {
  await page.getByRole('tab', {name: tab, exact: true}).click()
  const text = page.getByRole('tabpanel').locator('pre')
  return until(page, 'the snippet', async () => (await text.innerText()) !== 'Loading' && text.innerText())
}

const scenarios = {
  ...Object.fromEntries(['log', 'metric', 'meter', 'audit'].map((kind) => [`${kind}: what a snippet sends arrives`, async () => {
    await declare(topic + kind, kind)
    for (const tab of kinds[kind].filter((t) => t !== 'syslog')) {
      const page = await shown(topic + kind)
      assert.deepEqual(await page.getByRole('tab').allInnerTexts(), kinds[kind])
      const said = await pasted(await text(page, tab))
      assert.doesNotMatch(said, /"error"|curl: \(/)
      // A change of a meter and an export of OpenTelemetry that are sent twice in a second are one.
      const least = kind === 'meter' || tab === 'OpenTelemetry' ? 1 : 2
      await until(page, `what ${tab} sent, which said ${said}`, async () => (await arriving(page).getByRole('row').count()) >= least)
      await page.context().close()
    }
  }])),
  async 'syslog is of the topic that is named'() {
    const page = await shown('app')
    const line = await text(page, 'syslog')
    assert.match(line, /^# what comes by syslog is of the topic app\n/)
    await pasted(line)
    await until(page, 'two messages', async () => (await arriving(page).getByRole('row').filter({hasText: 'order placed'}).count()) === 2)
  },
  async 'a document'() {
    await declare(topic + 'document', 'document')
    const page = await open(at(`send?topic=${topic}document`))
    const said = await pasted(await text(page, 'curl'))
    assert.match(said, /"id":"c-024"/)
    assert.deepEqual(await page.getByRole('tab').allInnerTexts(), kinds.document)
    await page.getByRole('link', {name: 'Documents'}).last().click()
    await page.getByRole('table', {name: 'Documents'}).getByText('c-024').waitFor()
  },
  async 'a timer'() {
    await declare(topic + 'timer', 'timer')
    const page = await open(at(`send?topic=${topic}timer`))
    const said = await pasted(await text(page, 'curl'))
    assert.deepEqual(await page.getByRole('tab').allInnerTexts(), kinds.timer)
    const {timers} = await ask('GET', `/v1/timers/mails?topic=${topic}timer`)
    assert.ok(timers.some((t) => t.id.startsWith('welcome-')), said)
  },
  async 'another topic is shown while an event of the first is drawn'() {
    for (const one of ['a', 'b']) await declare(topic + one, 'log')
    const page = await open('about:blank')
    await page.clock.install()
    await page.goto(at(`send?topic=${topic}a`))
    await page.getByText('Connected. Waiting for events.').waitFor()
    await page.clock.pauseAt(Date.now() + 20_000) // from here the page's own clock goes as it is told
    await send([{message: 'of the first'}], topic + 'a')
    await page.getByRole('combobox', {name: 'Topic'}).selectOption(topic + 'b')
    await page.clock.runFor(30) // less than an event waits for others before all are drawn
    await page.clock.resume()
    await page.getByText('Connected. Waiting for events.').waitFor()
    await send([{message: 'of the second'}], topic + 'b')
    await arriving(page).getByText('of the second').waitFor()
  },
}

await run(scenarios)
