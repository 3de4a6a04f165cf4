import pino from 'pino'
import es from 'pino-elasticsearch'
const stream = es({ index: 'probe-%{DATE}', node: process.env.ELASTIC, esVersion: 8, flushBytes: 1 })
stream.on('insertError', (e) => { console.error(e); process.exit(1) })
stream.on('error', (e) => { console.error(e); process.exit(1) })
const log = pino({}, stream)
log.error({ user_id: 'u-pino-es', nested: { a: [1] } }, 'from pino-elasticsearch')
setTimeout(() => process.exit(0), 3000)
