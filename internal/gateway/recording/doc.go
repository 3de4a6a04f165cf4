// Package recording stores what was asked of the API before it is answered, in a topic of kind
// audit.
//
// # Model
//
// A request that reads events is one activity of type read. It has the request's id, address
// and body, where it came from, and who asks as a header claims. Its actor is the name of the token
// that asks, and it is empty without one. It is on disk before
// the read begins, so nothing was read that is not recorded. A read that was recorded
// may have been refused or cut off since.
//
// # Who is authoritative
//
// The declarations of the API say what reads (operations.Access). That is all that is answered with events,
// documents, timers or values of them, and replays. Health, /metrics, which has numbers of groups alone,
// and what writes are not recorded. What reaches ClickHouse or NATS by their own ports, verbs of the
// command line among it, does not pass here.
//
// # Failures
//
// What cannot be recorded is refused with 503. The topic is not there or of another kind, or
// the stream does not take events. Address and body are recorded whole, up to MaxBytes; longer
// ones and compressed bodies are refused, so that nothing can be hidden in them.
package recording
