// Package recent finds what is accepted and not stored yet: the frames in EVENTS above the
// checkpoints of a topic's lanes, and those in SHARDS above the heads of its shards. It reads,
// and changes nothing. Package query alone uses it.
//
// # Model
//
// An event moves from EVENTS to SHARDS to ClickHouse. Where each place ends is read before
// the place itself, in the order in which the event moves. So a frame that moves on during a
// read is met in both places, and none is missed between two. Each step is a type that the
// next one needs, so a wrong order does not compile:
//
//	Index.Snapshot    checkpoints
//	Snapshot.Pending  ─▶ frames of EVENTS above them
//	Snapshot.Months   ─▶ months of the registry
//	Snapshot.Shards   ─▶ entries of the registry, then heads and last frames: Shard
//	Snapshot.Above    ─▶ frames of SHARDS above the heads of Shards: Above
//	                     rows of ClickHouse: a reader of them takes an Above
//
// Only this package can make a Shard with a head, or an Above. EVENTS and the registry need
// not wait for one another. The janitor purges neither stream so early that a read
// could miss a frame between the two.
//
// # States
//
// An Index by New is for one verb: every read asks for all it goes by, and keeps nothing for
// the next. One by NewFollowing serves many reads. It goes by checkpoints and heads that are some seconds old,
// and while Run runs it reads them again ahead of queries, over a second connection. Close
// releases what it holds, and so does half a minute without a read.
//
// What it holds is a copy and decides nothing. recentCache has a tailer for each topic and stream.
// A tailer brings what comes to its frame indexes (frameIndex) by one request. A frame index has the metas of one lane or
// one shard, from some place on, and the newest frames whole. headCache has what ClickHouse
// had of shards.
//
// # Who is authoritative
//
// The registry says which shards may overlap a time range. The frames' headers say which
// frames lie above the heads. ClickHouse says what is stored.
//
// EVENTS may lose its end and give its sequences again, and a checkpoint then stands above
// what is accepted since. An Index decides where the lane goes on as its router will (fit.go),
// so it shows those events before the router resumes.
//
// A keyed request that NATS did not know again may lie in EVENTS a second time, and what an erasure took of the first
// must not be seen by it. So where a frame above a checkpoint is a part of such a request, Snapshot.Pending reads what SHARDS keeps
// of the parts that the lane was given (given.go), after the checkpoint, and leaves out what the router will drop. It
// reads on from where it was, and only when the checkpoint moved.
//
// # Failures
//
// A frame index that does not reach back as far as a read needs is read again. After a lost
// connection everything is, for a stream may have been restored from an older copy: see
// Snapshot.Outdated. A frame that was not where its meta said ends the read with an error,
// and the index forgets everything. More than MaxFrames are not kept: one read scans their
// headers, and says so when it had to cut. Every call ends with its context.
package recent
