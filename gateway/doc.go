// Package gateway is Almanac's way in and out for programs that do not link the
// producer: events by the protocols that clients already speak, and every read over
// HTTP.
//
// # Model
//
//	listeners ──▶ one input per protocol ──▶ pool ──▶ producers ──▶ EVENTS
//	          └─▶ api ──▶ query
//
// An input is a package of its own: a pure decoder from bytes to events and refusals,
// and a thin shell that speaks the protocol. Inputs do not import each other. They share
// package request (the id, the body within its bounds, the shape of errors) and package
// pool (memory, admission, the answer after JetStream's).
//
// The order of a request: connection limit, header within its time, id, loopback and
// cross-origin checks, draining, bytes in flight, wire limit, unpacked within a bound,
// decoded whole, taken whole, answered when stored. So whatever is refused is refused
// before anything of it was taken.
//
// # Who is authoritative
//
// The stream: a request is answered with success after JetStream's acknowledgement of
// all its events, which on Almanac's own server means after fsync.
//
// # States
//
//	listening ──▶ draining ──▶ closed
//
// Draining begins with the end of Run's context: readiness goes, listeners close,
// requests under way end within Grace, long reads end at once, and the producers flush.
//
// # Failures
//
// A client that is slow, cancelled or hostile costs its own connection: headers have
// headerWait, bodies a rate, tails and answers a write deadline. Connections above the limit
// wait in the kernel's queue. What the pool refuses, each input says in its protocol.
package gateway
