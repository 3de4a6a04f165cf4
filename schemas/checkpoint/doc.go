// Package checkpoint is how far a lane has routed its stream, and what of a stream that was
// set back or lost its end a checkpoint can still account for.
//
// # Model
//
// A Checkpoint names the last message that a lane dealt with by its sequence, digest and
// stored time (a sequence alone is given again after a cut), and has what routing must
// remember: producers' windows, tails of shards, messages settled out of order, those that
// were silent or kept, and cuts. It is the last message on the lane's routed subject.
//
// # Who is authoritative
//
// Routers write a checkpoint by compare-and-set in one atomic batch with what they routed.
// Everybody else reads. Where a checkpoint and its stream disagree (Misfit), traces in
// SHARDS say which messages were routed (Resume), and the rest is named as lost (CutOf).
//
// # Failures
//
// Everything here is pure: no I/O, clock or goroutine. Each list has a bound; what no longer
// fits is refused or forgotten as its comment says, and never grows the message.
package checkpoint
