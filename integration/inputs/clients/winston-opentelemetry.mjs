import winston from 'winston'
import { logs } from '@opentelemetry/api-logs'
import { LoggerProvider, BatchLogRecordProcessor } from '@opentelemetry/sdk-logs'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-http'
import { OpenTelemetryTransportV3 } from '@opentelemetry/winston-transport'
const provider = new LoggerProvider({
  resource: resourceFromAttributes({ 'service.name': 'winston-otel' }),
  processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter({ url: process.env.OTLP_HTTP + '/v1/logs' }) })],
})
logs.setGlobalLoggerProvider(provider)
const log = winston.createLogger({ level: 'info', transports: [new OpenTelemetryTransportV3()] })
log.error('from winston-opentelemetry', { 'user.id': 'u-winston-otel', n: 3 })
await new Promise((resolve) => setTimeout(resolve, 300))
await provider.forceFlush()
await provider.shutdown()
