// Gives documents to the helper until its input ends, and says how many: none may be dropped.
import { Client } from '@elastic/elasticsearch'
let more = true
process.stdin.on('end', () => { more = false }).resume()
const client = new Client({ node: process.env.ELASTIC })
let sent = 0
async function * documents () {
  while (more) {
    yield { '@timestamp': new Date().toISOString(), message: 'through an outage', n: String(sent++) }
    if (sent % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const dropped = []
const result = await client.helpers.bulk({
  datasource: documents(), flushBytes: 4096, flushInterval: 500,
  onDocument: () => ({ create: { _index: 'probe' } }), onDrop: (d) => dropped.push(d),
})
if (dropped.length > 0 || result.failed !== 0 || result.successful !== sent) {
  console.error(result, dropped.length, dropped[0])
  process.exit(1)
}
console.log(JSON.stringify({ sent, retried: result.retry }))
