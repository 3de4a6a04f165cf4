// Package remotewrite takes what Prometheus and its agents send by remote write: POST
// /api/v1/write in version 1.0 (prometheus.WriteRequest) and 2.0
// (io.prometheus.write.v2.Request), protobuf in a snappy block.
//
// # Model
//
// A request has series, a series has labels and samples. Each sample becomes one event of a
// topic of kind metric. Decode is pure: it finds what each series says and its samples, in
// order, and never waits. What a series says is read when the pool does not know its bytes:
// Prometheus sends the same ones every 15 seconds, and the pool remembers the checked series
// (pool/series.go). A topic whose descriptors ask for more than a point's time, value and
// start gets an event for each sample instead.
//
//	__name__              type, the metric's name
//	service, user_id      the columns of these names, which tell series apart too
//	every other label     an attribute; one named like a column of the kind, such as unit, gets
//	                      the prefix that kinds.LabelKey adds
//	value                 value; NaN, infinities and staleness markers are kept as words in points
//	type (2.0)            points: cumulative for counters, gauge for gauges
//	unit, start (2.0)     the columns of these names
//
// Version 1.0 sends types and units apart from samples; they are taken and not kept. Help texts
// and exemplars are not kept either: the answer counts none of them as written.
//
// # Who is authoritative
//
// The stream. A request is answered after JetStream acknowledged all its events. One that
// is sent again is stored again and counts once: of samples of one series and time the last one
// counts. It has no key of its own, since the same samples may be meant again: after others of
// the same times, or after an erasure.
//
// # Failures
//
// A body that is not such a request is ErrWrite, and nothing of it is taken. A series or sample
// that cannot become an event is a Refusal; the others are stored, and the answer is 400 with
// the first refusals. Native histograms are such. A request that is too large once unpacked is
// ErrTooLarge. What the pool refuses is 429 or 503, which clients send again.
package remotewrite
