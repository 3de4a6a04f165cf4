// Package pool is the way of every input to the stream: one producer for each topic,
// one bound on memory for all requests, and one answer to "can events be taken now?".
//
// # Model
//
// A Request goes through these states, and only forward:
//
//	begun ──▶ ready ──▶ reserved ──▶ filled ──▶ taken ──▶ stored
//	   └─────────┴──────────┴───────────┘
//	           refused: nothing was taken
//
// Ready waits for at most Hold until the stream takes events, and refuses then. Grow
// reserves bytes of the bound that all requests share. To gives the batch of a topic,
// Add checks an event, and only Submit takes anything: all events of the request, one
// batch after the other. A request that is refused before that has stored nothing.
//
// A producer is made when its topic is first used, and replaced when the topic's
// descriptor changes (producers.go): a field that was promoted gets its column within
// watchEvery. The one before is closed once the last request that uses it has ended.
//
// A series of points is checked once, and remembered by the bytes that name it (series.go).
// It belongs to one producer, so that it ends with the version of its topic.
//
// # Who is authoritative
//
// The registry says which topics there are. The producers say what is stored. The
// watch (watch.go) looks at both, at the connection and at the stream's size, and
// decides by a pure function, stalled, whether events can be taken.
//
// # Once
//
// A request with a key that the stream had before is acknowledged and not stored again.
// That holds after an erasure too: a client that lost its answer sends the same events of
// the same times, and must not bring back what was erased meanwhile. Request.Erased names
// the erasures, so that no input acknowledges silently what is not there.
//
// # Failures
//
// ErrBusy: the bytes of other requests leave no room. ErrStalled: the stream does not
// take events: NATS is away, EVENTS is full, or frames are unanswered. ErrDraining: this
// process ends. After each of them nothing is stored, and the same request may be sent
// again. ErrOutcomeUnknown: events were taken and not answered in time. The producer goes on sending
// them, so that the same request sent again may double them, unless it has a key.
package pool
