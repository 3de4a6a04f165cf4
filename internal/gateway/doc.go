// Package gateway is Almanac's way in and out for programs that do not link the
// producer: events by the protocols that clients already speak, and every read over
// HTTP.
//
// # Model
//
//	listeners ──▶ one input per protocol ──▶ pool ──▶ producers ──▶ EVENTS
//	          └─▶ api, promapi, lokiread ──▶ query
//	          └─▶ mcp ──▶ those routes
//
// An input is a package of its own. It has a pure decoder from bytes to events and
// refusals, and a thin shell that speaks the protocol. Inputs do not import each other.
// They share package request: the id, the bounded body, the shape of errors. They share
// package pool: memory, admission, the answer after JetStream's.
//
// A request passes these in order: connection limit, header time and size, id, package guard,
// draining, bytes in flight, wire limit, unpacked limit. Then it is decoded whole, taken
// whole, and answered when stored. What is refused has stored nothing.
//
// # Who is authoritative
//
// The stream. A request succeeds after JetStream acknowledged all its events. On
// Almanac's own server that is after fsync.
//
// # States
//
//	listening ──▶ draining ──▶ closed
//
// Draining begins with the end of Run's context. Readiness goes and listeners close.
// Requests under way end within Grace, and long reads at once. Then the producers flush.
//
// # Failures
//
// A client that is slow, cancelled or hostile costs its own connection. Headers have a
// time, bodies and answers a pace. Connections above the limit wait in
// the kernel's queue. What the pool refuses, each input says in its protocol.
package gateway
