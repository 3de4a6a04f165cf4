import winston from 'winston'
import { ElasticsearchTransport } from 'winston-elasticsearch'
const transport = new ElasticsearchTransport({ level: 'info', index: 'probe', flushInterval: 200, clientOpts: { node: process.env.ELASTIC } })
transport.on('error', (e) => { console.error(e); process.exit(1) })
const log = winston.createLogger({ transports: [transport] })
log.on('error', (e) => { console.error(e); process.exit(1) })
log.info('from winston-elasticsearch', { n: 5 })
setTimeout(async () => { await transport.flush(); process.exit(0) }, 2000)
