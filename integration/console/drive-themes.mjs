// What axe-core finds on every page, in both themes: nothing serious. Names, roles and order are the same in both, so the
// second theme is looked at for contrast alone. And every page at widths from 360 to 2,560 pixels: none is wider than its window, and
// no text is too small to be read.
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

const widths = [360, 1024, 1920, 2560]
const least = 10 // pixels that letters have at least

/** unfit says what does not fit in the window, or cannot be read. */
const unfit = (page) => page.evaluate((least) => {
  const wrong = []
  for (const e of [document.documentElement, ...document.querySelectorAll('main, main > *')]) {
    if (e.scrollWidth > e.clientWidth) wrong.push(`${e.tagName} is ${e.scrollWidth - e.clientWidth} pixels wider than its window`)
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  for (let n; (n = texts.nextNode()) && wrong.length < 5;) {
    if (!n.data.trim()) continue
    const range = document.createRange()
    range.selectNodeContents(n)
    const box = range.getBoundingClientRect()
    if (!box.width || !n.parentElement.checkVisibility()) continue
    const size = parseFloat(getComputedStyle(n.parentElement).fontSize)
    if (size < least) wrong.push(`${JSON.stringify(n.data.slice(0, 30))} has letters of ${size} pixels`)
  }
  return wrong
}, least)

/** fits looks at a page at every width. */
async function fits(page) {
  const found = {}
  for (const width of widths) {
    await page.setViewportSize({width, height: 800})
    await settled(page)
    const wrong = await unfit(page)
    if (wrong.length) found[width] = wrong
  }
  assert.deepEqual(found, {})
}

const scenarios = {
  async 'the check finds what is wrong'() {
    const page = await openAt('health')
    await page.evaluate(axe)
    await page.evaluate(() => { const b = document.createElement('button'); document.querySelector('main').append(b) })
    assert.match((await serious(page)).join(), /button-name/)
    await page.evaluate(() => { document.querySelector('main').style.color = 'rgb(120 120 120)'; document.querySelector('main').style.setProperty('--text', 'rgb(190 190 190)') })
    assert.match((await serious(page, ['color-contrast'])).join(), /color-contrast/)
    assert.deepEqual(await unfit(page), [])
    await page.evaluate(() => { const p = document.createElement('p'); p.textContent = 'tiny and wide'; p.style.cssText = 'font-size: 6px; width: 9000px'; document.querySelector('main').append(p) })
    assert.match((await unfit(page)).join(), /wider than its window.*tiny and wide/)
  },
}
for (const [name, [address, does]] of Object.entries(pages)) {
  scenarios[name + ', in both themes and at every width'] = async () => {
    if (name === 'search') await fill()
    const page = await openAt(address, {colorScheme: 'light', reducedMotion: 'reduce', viewport: {width: 1280, height: 600}}) // few rows, so that it is quick
    await does?.(page)
    await settled(page)
    await page.evaluate(axe)
    const light = await serious(page)
    await page.emulateMedia({colorScheme: 'dark'})
    await settled(page)
    assert.deepEqual({light, dark: await serious(page, ['color-contrast'])}, {light: [], dark: []})
    await fits(page)
  }
}

await run(scenarios)
