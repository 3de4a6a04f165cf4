// Package export sends the numbers of a process to an OTLP endpoint, such as an OpenTelemetry Collector.
//
// # Model
//
// Each minute it gathers what /metrics has, makes OTLP metrics of it and posts them to /v1/metrics of the endpoint.
// Counters and histograms are cumulative. When the process ends, once its parts have, a last post has what came since.
//
// Headers say who sends, where the endpoint asks that. They go to it alone: a redirect is an answer that refuses.
//
// # Failures
//
// A post that fails is reported and not repeated: the next one has all that it had. A process neither waits for the
// endpoint nor ends with it, but for the last post, for which it waits LastWait at most.
package export
