import pino from 'pino'
process.env.OTEL_EXPORTER_OTLP_LOGS_ENDPOINT = process.env.OTLP_HTTP + '/v1/logs'
const log = pino(pino.transport({
  target: 'pino-opentelemetry-transport',
  options: { resourceAttributes: { 'service.name': 'pino-otel' }, logRecordProcessorOptions: { recordProcessorType: 'simple', exporterOptions: { protocol: 'http', httpExporterOptions: { url: process.env.OTLP_HTTP + '/v1/logs' } } } },
}))
log.warn({ user_id: 'u-pino-otel', nested: { a: 1 } }, 'from pino-opentelemetry')
setTimeout(() => log.flush(() => setTimeout(() => process.exit(0), 1500)), 500)
