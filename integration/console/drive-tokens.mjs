// What the page says of a token that is not valid any more, and of one that lacks a role.
import {execFile} from 'node:child_process'
import {promisify} from 'node:util'
import {declare} from './example.mjs'
import {at, open, run, send, settled, told, until} from './page.mjs'

const salt = Date.now().toString(36) // names are others each time, so that the script may run twice on one Almanac
const token = async (name, ...roles) => (await promisify(execFile)(told.program, ['token', 'add', `${name}-${salt}`, ...roles, '--data', told.data])).stdout.trim()

/** says opens a page with a token and waits for what it says: what runs takes a token up within two seconds. */
async function says(secret, fragment, text) {
  const page = await open(`${told.base}/console/#token=${secret}`)
  await until(page, 'the token is taken', async () => !page.url().includes('alm_'))
  await page.goto(at(fragment))
  const said = page.locator('main').getByText(text).first()
  const ask = page.getByRole('button', {name: /^(Verify now|Run)$/}).first() // of pages that ask for nothing by themselves
  let patience = 3_000 // twice as much each time: the machine may be slow
  await until(page, String(text), async () => {
    if (await ask.isVisible()) await ask.click({timeout: patience}).catch(() => undefined)
    if (await said.waitFor({timeout: patience}).then(() => true, () => false)) return true
    patience *= 2
    await page.goto(at(fragment)) // another one may have been shown while the token was not taken up
    await page.reload()
    await settled(page)
    return false
  })
  return page
}

const scenarios = {
  async 'a token that has ended, and another in its place'() {
    await declare('tokens', 'log')
    await send([{message: 'for those who may'}], 'tokens')
    const ended = await token('ended', '--read', '*', '--expires', '2s')
    const page = await says(ended, 'search?topic=tokens&from=all', /^The token of this tab is not valid: it has ended, /)
    const fresh = await token('fresh', '--read', '*')
    await says(fresh, 'search?topic=tokens&from=all', /^for those who may$/) // it is taken up
    await page.getByRole('textbox', {name: 'Token'}).first().fill(fresh) // the token may end between the events and the counts beside them
    await page.getByRole('button', {name: 'Use it'}).first().click()
    await page.getByRole('grid', {name: 'Events'}).getByText('for those who may').first().waitFor()
  },
  async 'a role that is missing is named'() {
    const reads = await token('reads', '--read', '*')
    for (const [fragment, role] of [['sql?sql=SELECT+1', 'sql'], ['proof', 'operate']]) {
      const page = await says(reads, fragment, new RegExp(`^token "reads-${salt}" does not have the role ${role}`))
      await page.getByRole('button', {name: /^(Verify now|Run)$/}).first().click()
      await page.getByRole('button', {name: 'Use it'}).first().waitFor() // and another may be given
    }
    const writes = await token('writes', '--write', 'tokens')
    await says(writes, 'search?topic=tokens&from=all', new RegExp(`^token "writes-${salt}" does not have the role read`))
  },
}

await run(scenarios)
