// Package timers plays the protocol of timers without a server: clients, dispatchers, mover and cleaner over one
// front, step by step, as a seed decides. The transitions are those of package schemas/timer.
//
// # Model
//
// The front is a log of records; a write is a compare-and-set on its key. Any write may be lost, be late, or
// be stored without an answer. A dispatcher follows the log into a copy, claims, calls and writes
// outcomes as timers/dispatch does; it dies at any step, and another one takes over. A run of its lane may end, and the next loads the log again while
// the attempt of the one before is under way. The mover makes rows of records in order. The
// cleaner purges a key that is over, up to what it saw, once it saw all of it stored.
//
// # Who is authoritative
//
// The log, and the list of calls. The oracle (oracle_test.go) reads nothing else, and the rows: each record follows
// from the one before it, a call has its claim and goes by its own group, no call is early, none lacks its spec, every timer is over in the
// end, and each record has its row.
//
// # Failures
//
// Each guard can be taken away (Break). The test expects that some seed finds it out. Not modelled: bytes, several
// lanes, limits, the members' heartbeats: a dispatcher that died is known to be dead.
package timers
