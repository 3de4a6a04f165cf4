// Builds the page into ../dist: scripts and styles whose names have a hash, index.html, and the licences of what is in
// them. The same sources give the same bytes. More than the limits fails. Parts that few visits need are files of their
// own. What all need is one part, which index.html names, so that it is loaded at once (src/core.ts).
import {build} from 'esbuild'
import {gzipSync} from 'node:zlib'
import {mkdir, readdir, readFile, rm, writeFile} from 'node:fs/promises'
import {join} from 'node:path'

const dist = '../dist'
const maxFirst = 45 * 1024 // what a first visit loads, compressed
const maxAll = 200 * 1024 // all of it, compressed

await mkdir(dist, {recursive: true})
for (const name of await readdir(dist)) {
  if (name !== 'placeholder.html') await rm(join(dist, name))
}

// What packages have for other pages is left out of them where a bundler cannot tell: ways that options of this page never
// take. A pattern that finds nothing fails the build, so that another version of a package is looked at.

/** left are, by the end of a file's path, patterns and what comes in place of each. */
const left = {
  // The page has charts of one kind: linear scales, a legend and labels of its own, times in seconds.
  '/uplot/dist/uPlot.esm.js': [
    [/\tconst showLegend = legend\.show;\n/, ''],
    [/\bshowLegend\b/g, 'false'],
    [/\tfunction initLegendRow\([^]*?(?=\tconst mouseListeners)/, ''],
    [/(?<![.\w])mode == 2\b/g, 'false'],
    [/(?<![.\w])mode == 1\b/g, 'true'],
    [/\b(?:\w+\.)?distr\s*== *(?:2|3|4|100)\b/g, 'false'],
    [/\bxScaleDistr == [234]\b/g, 'false'],
    [/\bsc\.distr >= 3\b/g, 'false'],
    [/\bms == 1\b/g, 'false'],
    [/const \[ timeIncrsMs,.*\n/, ''],
    [/const \[ timeIncrsS,.*\n/, 'const [timeIncrsS, timeAxisSplitsS] = genTimeStuffs(1e-3);\n'],
    [/\tconst _timeAxisStamps = \[[^]*?\n\t\];\n/, ''],
    [/\t\t_timeAxisStamps,\n/, ''],
    [/\tconst _fmtDate = .*\n/, ''],
    [/\tconst _timeAxisVals   = .*\n\tconst _timeSeriesVal  = .*\n/, ''],
    [/\t\t\ts\.value = isTime \?.*\n/, ''],
    [/\t\t\taxis\.values = \([^]*?\n\t\t\t\);\n/, ''],
    [/\tuPlot\.fmtDate = fmtDate;\n/, ''],
    [/uPlot\.(?:rangeLog|rangeAsinh|join|sync|fmtNum|addGap|clipGaps) *= .*\n/g, ''],
    [/\t\(paths\.(?:stepped|spline) .*\n/g, ''],
  ],
}

const made = new Set()

const leaner = {
  name: 'leaner',
  setup(build) {
    for (const [end, patterns] of Object.entries(left)) {
      build.onLoad({filter: new RegExp(end.replaceAll('.', '\\.') + '$')}, async ({path}) => {
        made.add(end)
        let contents = await readFile(path, 'utf8')
        for (const [pattern, instead] of patterns) {
          const next = contents.replace(pattern, instead)
          if (next === contents) throw new Error(`${path} has nothing like ${pattern}`)
          contents = next
        }
        return {contents, loader: 'js'}
      })
    }
  },
}

const {metafile} = await build({
  entryPoints: {app: 'src/main.tsx', icon: 'src/icon.svg'},
  outdir: dist,
  bundle: true,
  minify: true,
  format: 'esm',
  splitting: true,
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  loader: {'.svg': 'copy'},
  entryNames: '[name]-[hash]',
  chunkNames: 'part-[hash]',
  charset: 'utf8',
  plugins: [leaner],
  metafile: true,
  logLevel: 'warning',
})

for (const end of Object.keys(left)) {
  if (!made.has(end)) throw new Error(`no file ends with ${end}: nothing was left out of it`)
}

const names = Object.keys(metafile.outputs).map((at) => at.slice(dist.length + 1))
const startScript = Object.keys(metafile.outputs).find((at) => at.endsWith('.js') && at.startsWith(dist + '/app-'))
/** needed are the files that a script cannot begin without. */
function needed(at, found = new Set()) {
  for (const {path, kind} of metafile.outputs[at].imports) {
    if (kind === 'import-statement' && !found.has(path)) needed(path, found.add(path))
  }
  return [...found].map((path) => path.slice(dist.length + 1)).sort()
}
const shared = needed(startScript)
if (shared.length !== 1) {
  console.error(`a first visit loads ${shared.length} parts instead of one: each part that is loaded by import() has to import core.ts`)
  process.exit(1)
}
const named = (begin, end) => names.find((name) => name.startsWith(begin) && name.endsWith(end))
await writeFile(join(dist, 'index.html'), `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Almanac</title>
<link rel="icon" href="${named('icon-', '.svg')}">
<link rel="stylesheet" href="${named('app-', '.css')}">
<script type="module" src="${named('app-', '.js')}"></script>
${shared.map((name) => `<link rel="modulepreload" href="${name}">\n`).join('')}<body><noscript>This page needs JavaScript. The command line and the API do not.</noscript></body>
</html>
`)

// The licences of the packages that something was taken from: each text once, after the packages that have it and whose it is.
const packages = [...new Set(Object.keys(metafile.inputs).map((at) => /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(at)?.[1]).filter(Boolean))].sort()
const licences = new Map()
for (const name of packages) {
  const text = await readFile(`node_modules/${name}/LICENSE`, 'utf8')
  const begins = Math.max(text.indexOf('Permission is hereby'), 0) // before it: the licence's name, and whose copyright it is
  const terms = text.slice(begins).replace(/\s+/g, ' ')
  licences.set(terms, [...(licences.get(terms) ?? []), `${name}: ${text.slice(0, begins).replace(/\s+/g, ' ')}`])
}
await writeFile(join(dist, 'licences.txt'), [...licences].map(([terms, whose]) => `The page contains\n${whose.join('\n')}\n\n${terms}\n`).join('\n'))

let all = 0
let first = 0
for (const name of await readdir(dist)) {
  if (name === 'placeholder.html') continue
  const size = gzipSync(await readFile(join(dist, name)), {level: 9}).length
  all += size
  if ((!name.startsWith('part-') || shared.includes(name)) && name !== 'licences.txt') first += size
}
console.log(`the page: ${first} bytes compressed for a first visit, ${all} in all`)
if (first > maxFirst || all > maxAll) {
  console.error(`more than ${maxFirst} for a first visit or ${maxAll} in all: load what few visits need with import()`)
  process.exit(1)
}
