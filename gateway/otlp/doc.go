// Package otlp takes the logs of OpenTelemetry's protocol, over HTTP and gRPC.
//
// # Model
//
//	POST /v1/logs, /t/{topic}/v1/logs    protobuf or JSON, gzip, zstd
//	opentelemetry.proto.collector.logs.v1.LogsService/Export
//
// Decode is pure: a body becomes events, one for each log record, and refusals. It keeps
// every field. Resource attributes are resource.*, those of the scope scope.*, and the
// record's keep their names; maps are flattened with dots. A text body is the message;
// a map's message or msg is, and its other members are body.*; any other body is the
// message as text or JSON.
//
// The topic is in the path, in the header or metadata almanac-topic, or the default.
//
// # The answer
//
// Success means that all records that were not rejected are on disk. Rejected ones are
// counted in partial_success with a reason, and clients do not send them again. Errors
// are a google.rpc.Status in the request's own content type. Only 429 and 503, and in
// gRPC UNAVAILABLE and RESOURCE_EXHAUSTED with RetryInfo, ask for the same request again.
//
// # Once
//
// A request all of whose records have a time is stored once, however often it is sent
// within schemas.DedupWindow: its events are its key (producer.Batch). So an exporter
// that did not get an answer may send again. An Idempotency-Key tells apart requests
// that are the same on purpose.
//
// # Failures
//
// A body whose values nest deeper than maxDepth is refused before it is decoded, because
// the decoder recurses. Everything else is decided by package pool.
package otlp
