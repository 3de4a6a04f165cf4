// One record by each exporter of OpenTelemetry for Node.js: JSON, protobuf and gRPC.
import { LoggerProvider, BatchLogRecordProcessor } from '@opentelemetry/sdk-logs'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { OTLPLogExporter as Json } from '@opentelemetry/exporter-logs-otlp-http'
import { OTLPLogExporter as Proto } from '@opentelemetry/exporter-logs-otlp-proto'
import { OTLPLogExporter as Grpc } from '@opentelemetry/exporter-logs-otlp-grpc'
import { credentials } from '@grpc/grpc-js'

const exporters = {
  json: new Json({ url: process.env.OTLP_HTTP + '/v1/logs' }),
  protobuf: new Proto({ url: process.env.OTLP_HTTP + '/v1/logs', compression: 'gzip' }),
  grpc: new Grpc({ url: 'http://' + process.env.OTLP_GRPC, credentials: credentials.createInsecure() }),
}
for (const [name, exporter] of Object.entries(exporters)) {
  const provider = new LoggerProvider({
    resource: resourceFromAttributes({ 'service.name': 'otel-js', 'deployment.environment': 'test' }),
    processors: [new BatchLogRecordProcessor({ exporter })],
  })
  provider.getLogger('probe', '1.2.3').emit({
    severityNumber: 13, severityText: 'WARN', body: 'from otel-js',
    attributes: { exporter: name, 'user.id': 'u-otel', count: 7, ratio: 0.5, ok: true, list: ['a', 'b'] },
  })
  await provider.forceFlush()
  await provider.shutdown()
}
