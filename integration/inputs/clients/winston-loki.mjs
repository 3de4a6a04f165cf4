import winston from 'winston'
import LokiTransport from 'winston-loki'
for (const json of [true, false]) {
  const loki = new LokiTransport({ host: process.env.HTTP, json, batching: false, labels: { app: json ? 'winston-json' : 'winston-protobuf' } })
  const log = winston.createLogger({ transports: [loki] })
  log.warn('from winston-loki', { n: 1 })
}
setTimeout(() => process.exit(0), 3000)
