// What axe-core finds on every page, in both themes: nothing serious. Names, roles and order are the same in both, so the
// second theme is looked at for contrast alone.
import assert from 'node:assert/strict'
import {readFile} from 'node:fs/promises'
import {join} from 'node:path'
import {openAt, run, settled, told} from './page.mjs'
import {fill, pages} from './pages.mjs'

const axe = await readFile(join(told.packages, 'node_modules/axe-core/axe.min.js'), 'utf8')

/** serious are the faults that axe finds, each with the first elements that have it. */
async function serious(page, rules) {
  const {violations, passes} = await page.evaluate((rules) => globalThis.axe.run(document, {resultTypes: ['violations'], ...(rules && {runOnly: {type: 'rule', values: rules}})}), rules)
  assert.ok(passes.length > 0, 'axe looked at nothing')
  return violations.filter((v) => ['serious', 'critical'].includes(v.impact)).map((v) => `${v.id}: ${v.help}\n` + v.nodes.slice(0, 4).map((n) => `  ${n.html.slice(0, 160)}: ${n.any.concat(n.all, n.none)[0]?.message}`).join('\n'))
}

const scenarios = {
  async 'the check finds what is wrong'() {
    const page = await openAt('health')
    await page.evaluate(axe)
    await page.evaluate(() => { const b = document.createElement('button'); document.querySelector('main').append(b) })
    assert.match((await serious(page)).join(), /button-name/)
    await page.evaluate(() => { document.querySelector('main').style.color = 'rgb(120 120 120)'; document.querySelector('main').style.setProperty('--text', 'rgb(190 190 190)') })
    assert.match((await serious(page, ['color-contrast'])).join(), /color-contrast/)
  },
}
for (const [name, [address, does]] of Object.entries(pages)) {
  scenarios[name + ', in both themes'] = async () => {
    if (name === 'search') await fill()
    const page = await openAt(address, {colorScheme: 'light', reducedMotion: 'reduce', viewport: {width: 1280, height: 600}}) // few rows, so that it is quick
    await does?.(page)
    await settled(page)
    await page.evaluate(axe)
    const light = await serious(page)
    await page.emulateMedia({colorScheme: 'dark'})
    await settled(page)
    assert.deepEqual({light, dark: await serious(page, ['color-contrast'])}, {light: [], dark: []})
  }
}

await run(scenarios)
