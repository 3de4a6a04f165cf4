// Package metrics holds the one description of every number that a process says, and the registry that has them.
//
// # Model
//
// A Metric says name, help, kind and labels of a number, once. docs/metrics.md is made of them:
//
//	pipeline.go    inputs, producers, routers, sinks
//	state.go       what waits, servers, streams, tables, the scheduled verify
//	timers.go      groups of timers, and dispatchers
//	alerts.go      rules, what evaluates them, notifications
//	process.go     the binary, and sources that could not be read
//
// A process has one Registry. A part counts into what Counter, Gauge and Histogram return, or a Source reads its numbers
// when they are asked for. The Handler serves all of them, with those of the process and of Go.
//
// # Bounds
//
// Labels have values that Almanac bounds: topics, groups, results; never what a user wrote. Who makes samples puts
// what is above its bound under one value. Paced keeps reads of a source rare and one at a time.
//
// # Failures
//
// The numbers of a source that cannot be read are as they were, for five minutes, or missing, so that nothing looks like zero:
// almanac_metrics_source_failed names it, and almanac_metrics_source_age_seconds says how old they are. Those that are true only now, such as
// which members live, are missing at once. It is read again soon. The others are answered.
package metrics
