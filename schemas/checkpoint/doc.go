// Package checkpoint is how far a lane has routed its stream. It also tells what of a stream
// that was set back can still be accounted for.
//
// # Model
//
// A Checkpoint names the last message that a lane dealt with, by sequence, digest and stored
// time. A sequence alone is given again after a cut. The checkpoint has what routing must
// remember: producers' windows, tails of shards, and cuts. It has the messages that were
// settled out of order, silent or kept. It is the last message on the lane's routed subject.
//
// # Who is authoritative
//
// Routers write a checkpoint by compare-and-set, in one atomic batch with what they routed.
// All others read it. Misfit reports where a checkpoint and its stream disagree. Then traces
// in SHARDS say which messages were routed (Resume). The rest is named as lost (CutOf).
//
// # Failures
//
// Everything here is pure: no I/O, clock or goroutine. Each list has a bound. What no longer
// fits is refused or forgotten, as its comment says.
package checkpoint
