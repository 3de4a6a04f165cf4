// Package otlp takes the logs and metrics of OpenTelemetry's protocol, over HTTP and gRPC.
//
// # Model
//
//	POST /v1/logs, /t/{topic}/v1/logs    protobuf or JSON, gzip, zstd
//	opentelemetry.proto.collector.logs.v1.LogsService/Export
//	POST /v1/metrics, /t/{topic}/v1/metrics, metrics.v1.MetricsService/Export
//
// Parse and Logs.Events are pure: a body becomes events, one for each log record, and
// refusals. They keep every field. Resource attributes are resource.*, those of the scope
// scope.*, and the record's keep their names; maps are flattened with dots. A text body is
// the message; a map's message or msg is, and its other members are body.*; any other body
// is the message as text or JSON.
//
// DecodeMetrics makes points of data points, for topics of kind metric (metrics.go): numbers
// as they are, histograms and summaries as distributions (distribution.go). Attributes of
// all three levels are labels.
//
// The topic is in the path, in the header or metadata almanac-topic, or the default of logs
// or of metrics.
//
// # The answer
//
// Success means that all records that were not rejected are on disk. Rejected ones are
// counted in partial_success with a reason, and clients do not send them again. Texts that
// are not UTF-8 are stored byte by byte and marked (schemas.AttrInvalidUTF8); where the name
// of an attribute is one, partial_success says so and rejects nothing. Errors
// are a google.rpc.Status in the request's own content type. Only 429 and 503, and in
// gRPC UNAVAILABLE and RESOURCE_EXHAUSTED with RetryInfo, ask for the same request again.
//
// # Once
//
// A request all of whose records have a time is stored once, however often it is sent
// within schemas.GivenFor: its events are its key (producer.Batch). So an exporter
// that did not get an answer may send again. An Idempotency-Key tells apart requests
// that are the same on purpose. What an erasure took of a request since stays erased when
// the request is sent again: the answer names the erasure, and another key stores it.
// Metrics have no key of their own: of points of one series and instant the last one counts.
//
// # Failures
//
// Values that nest deeper than maxDepth are refused before they are decoded, because
// the decoder recurses. Everything else is decided by package pool.
//
// # Reading
//
// Log records are read by their field numbers (record.go), because that takes less than half
// of the time that OpenTelemetry's decoder takes. What is seldom, it reads: resources, scopes,
// values with parts, JSON. A test holds one to the other.
package otlp
