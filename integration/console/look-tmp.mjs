import {openAt, run, settled, told} from './page.mjs'
import {fill, pages} from './pages.mjs'
await run({
  async 'data'() { await fill() },
  async 'shots'() {
    for (const [name, w, h, theme] of [['change', 1280, 1500, 'light'], ['change', 360, 1800, 'dark'], ['health', 1280, 1000, 'light'], ['charts', 1280, 900, 'dark'], ['topics', 2560, 1000, 'light'], ['search', 1024, 700, 'light']]) {
      const [address, does] = pages[name]
      const page = await openAt(address, {viewport: {width: w, height: h}, colorScheme: theme})
      await does?.(page)
      if (name === 'charts') { await page.getByRole('button', {name: 'Saved charts'}).click() }
      await settled(page)
      await page.screenshot({path: `${told.shots}/${name}-${w}.png`})
    }
  },
})
