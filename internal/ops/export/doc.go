// Package export sends the numbers of a process to an OTLP endpoint, such as an OpenTelemetry Collector.
//
// # Model
//
// Each minute it gathers what /metrics has, makes OTLP metrics of it and posts them to /v1/metrics of the endpoint.
// Counters and histograms are cumulative.
//
// # Failures
//
// A post that fails is reported and not repeated: the next one has all that it had. A process neither waits for the
// endpoint nor ends with it.
package export
