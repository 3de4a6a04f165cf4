import { Client } from '@elastic/elasticsearch'
const client = new Client({ node: process.env.ELASTIC })
const documents = Array.from({ length: 250 }, (_, i) => ({ '@timestamp': new Date().toISOString(), message: 'from @elastic/elasticsearch', number: i, 'log.level': 'WARN' }))
const result = await client.helpers.bulk({ datasource: documents, flushBytes: 4096, onDocument: () => ({ create: { _index: 'probe' } }), onDrop: (d) => console.error('dropped', d) })
if (result.failed !== 0 || result.successful !== 250) { console.error(result); process.exit(1) }
