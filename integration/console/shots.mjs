// Writes a picture of every page, in both themes and at three widths, into a directory: of made-up data, and of real files
// where there are some. readme-*.png, of made-up data alone, are those of the README. ALMANAC_CONSOLE_SHOTS_OF names some
// of the pages, of an Almanac that has them already, or readme alone.
import assert from 'node:assert/strict'
import {execFile} from 'node:child_process'
import {existsSync} from 'node:fs'
import {join} from 'node:path'
import {promisify} from 'node:util'
import {declare} from './example.mjs'
import {openAt, run, settled, told} from './page.mjs'
import {fill, firstRow, pages} from './pages.mjs'

const almanac = (...args) => promisify(execFile)(told.program, [...args, '--data', told.data])

// Real files: what is sent by the command line, and what is looked at.
const real = {
  auth: ['auth-syslog.log', ['--ts-format', 'syslog'], 'search?topic=auth&from=all'],
  web: ['web-access-apache.log.gz', ['--ts-format', 'clf'], 'search?topic=web&from=all'],
  cloudtrail: ['audit-cloudtrail.jsonl.gz', ['--format', 'ndjson', '--ts-field', 'eventTime', '--user-field', 'userIdentity.userName'], 'search?topic=cloudtrail&from=all', firstRow],
  kafka: ['app-kafka-broker0-server.log', ['--multiline', '^\\[', '--ts-format', 'log4j'], 'search?topic=kafka&from=all&wrap=1'],
  github: ['events-github.jsonl.gz', ['--format', 'ndjson', '--ts-field', 'created_at', '--user-field', 'actor.login'], 'search?topic=github&from=all', firstRow],
  odd: ['odd-invalid-utf8.log', ['--multiline', '^\\d{4}-', '--ts-format', '2006-01-02T15:04:05'], 'search?topic=odd&from=all', firstRow],
}

async function shot(name, [address, does], {width, theme, height = width < 500 ? 740 : 900, file = `${name}-${theme}-${width}`}) {
  const page = await openAt(address, {viewport: {width, height}, colorScheme: theme, reducedMotion: 'reduce'})
  await does?.(page)
  await settled(page)
  await page.screenshot({path: join(told.shots, file + '.png')})
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
  await page.context().close()
  assert.ok(wide <= 0, `${file} is ${wide} pixels wider than the window`)
}

const only = (process.env.ALMANAC_CONSOLE_SHOTS_OF ?? '').split(',').filter(Boolean)
const all = Object.entries(pages)
const scenarios = {
  async 'data'() {
    if (!only.length || only.includes('readme')) await fill()
  },
}
for (const [name, [file, flags, ...of]] of told.shared ? Object.entries(real) : []) {
  if (!existsSync(join(told.shared, file))) continue
  all.push([name, of])
  scenarios[file] = async () => {
    if (only.length) return
    await declare(name, 'log')
    await almanac('send', name, join(told.shared, file), ...flags)
  }
}
for (const [name, of] of all) {
  if (only.length && !only.includes(name)) continue
  scenarios[name] = async () => {
    for (const theme of ['light', 'dark']) for (const width of [360, 1024, 1920]) await shot(name, of, {width, theme})
  }
}
for (const [name, theme] of [['event', 'light'], ['charts', 'dark'], ['usage', 'light'], ['proof', 'dark']]) {
  if (only.length && !only.includes('readme')) break
  scenarios['README: ' + name] = () => shot(name, pages[name], {width: 1200, height: 600, theme, file: 'readme-' + name})
}

await run(scenarios)
