import winston from 'winston'
const url = new URL(process.env.HTTP)
const transport = new winston.transports.Http({ host: url.hostname, port: url.port, path: '/v1/topics/app/events' })
transport.on('warn', (error) => { console.error(error); process.exit(1) })
const log = winston.createLogger({ transports: [transport] })
log.info('from winston-http', { user_id: 'u-winston-http' })
setTimeout(() => process.exit(0), 2000)
