// Package promapi serves topics of kind metric by Prometheus's HTTP API, for Grafana's data
// source and other clients of Prometheus.
//
// # Model
//
//	/api/v1/query, query_range                 by Prometheus's engine
//	/api/v1/series, labels, label/NAME/values  which series there are
//	/api/v1/metadata                           types and units, by the points themselves
//	/api/v1/status/buildinfo                   so that clients know what the engine can do
//	/api/v1/rules, alerts                      rules over any kind of topic, and what is pending or firing
//
// Each takes GET, and POST with a form where Prometheus does, also below /t/TOPIC. Paths,
// parameters and answers are Prometheus's own, and documented there.
//
// # Who is authoritative
//
// Package prometheus answers, and package alerts of rules. This one reads parameters and writes JSON.
//
// # Failures
//
// An error has Prometheus's shape and status: 400 for what the request has wrong, 422 for what
// cannot be computed, 503 for what takes too long or is busy. What an answer does not include
// stands in its warnings. An answer that breaks off while it is written ends the connection.
package promapi
