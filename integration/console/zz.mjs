import {at, open, rows, filter, told} from './page.mjs'
for (let i=0;i<3;i++){
const page = await open('about:blank')
const t0=performance.now()
page.on('request', r=>console.log(Math.round(performance.now()-t0),'>',r.method(),r.url().replace(told.base,'').slice(0,140)))
page.on('requestfinished', async r=>{console.log(Math.round(performance.now()-t0),'<',r.url().replace(told.base,'').slice(0,90))})
await page.goto(at('search?topic=app&from=-1d'))
console.log(Math.round(performance.now()-t0),'goto')
await rows(page).first().waitFor()
console.log(Math.round(performance.now()-t0),'ROWS')
await page.getByText(/ of [\d,]+ events$/).first().waitFor()
console.log(Math.round(performance.now()-t0),'COUNT')
if(i==2){
 const user='u-5'+Math.floor(Math.random()*9000)
 await page.waitForTimeout(3000)
 await filter(page).fill(`user_id = '${user}'`)
 await page.keyboard.press('Escape')
 const before = await rows(page).first().textContent()
 const b=performance.now(); console.log(Math.round(b-t0),'ENTER')
 await filter(page).press('Enter')
 await page.waitForFunction((before)=>{const box = document.querySelector('[role=grid][aria-label="Events"]:not(.busy)'); const f=box?.querySelector('[aria-rowindex]'); return f&&f.textContent!==before},before)
 console.log(Math.round(performance.now()-b),'user rows')
 await page.waitForTimeout(3000)
}
await page.context().close()
}
process.exit()
