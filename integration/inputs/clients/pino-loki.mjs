import pino from 'pino'
const log = pino(pino.transport({ target: 'pino-loki', options: { host: process.env.HTTP, batching: false, labels: { app: 'pino-loki' } } }))
log.info({ user_id: 'u-pino-loki', nested: { a: 1 } }, 'from pino-loki')
setTimeout(() => log.flush(() => setTimeout(() => process.exit(0), 1500)), 500)
