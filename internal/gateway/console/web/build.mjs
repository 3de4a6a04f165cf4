// Builds the page into ../dist: scripts and styles whose names have a hash, index.html, and the licences of what is in
// them. The same sources give the same bytes. More than the limits fails.
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
  metafile: true,
  logLevel: 'warning',
})

const names = Object.keys(metafile.outputs).map((at) => at.slice(dist.length + 1))
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
<body><noscript>This page needs JavaScript. The command line and the API do not.</noscript></body>
</html>
`)
await writeFile(join(dist, 'licences.txt'), 'The page contains preact.\n\n' + (await readFile('node_modules/preact/LICENSE', 'utf8')))

let all = 0
let first = 0
for (const name of await readdir(dist)) {
  if (name === 'placeholder.html') continue
  const size = gzipSync(await readFile(join(dist, name)), {level: 9}).length
  all += size
  if (!name.startsWith('part-') && name !== 'licences.txt') first += size
}
console.log(`the page: ${first} bytes compressed for a first visit, ${all} in all`)
if (first > maxFirst || all > maxAll) {
  console.error(`more than ${maxFirst} for a first visit or ${maxAll} in all: load what few visits need with import()`)
  process.exit(1)
}
