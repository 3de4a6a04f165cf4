// Package replay reads a topic's events again, in order, at a chosen speed, into a
// writer, a NATS subject or another topic.
//
// # Model
//
//	           positions up to the seam
//	ClickHouse ─────────────┐
//	                        ├─▶ units ─▶ open, filter, render ─▶ order ─▶ pace ─▶ sink ─▶ cursor
//	SHARDS     ─────────────┘
//	           positions above it
//
// A job replays what was routed when it began: the shards that may hold events of
// its range, each up to the last position it had then. A unit is one frame, or as
// many rows of ClickHouse as the frames of one insert had on average. Every unit
// of a shard has a number: a frame its position, one of n units that stand for the
// insert of positions a to b a number in between. So numbers rise, and the same
// job numbers the same events alike each time.
//
// # The seam
//
// SHARDS has the frames of a shard from some position on: the janitor purges from
// below. What is further back is read from ClickHouse. Rows of one insert carry
// the position of its last frame, so the seam can only lie at such a position: the
// smallest stored one that is not below the first frame's predecessor. Up to it
// the rows come from ClickHouse, above it the frames from SHARDS. It is looked for
// again whenever a frame is missing that should be there. When the janitor
// overtakes a replay within one insert the frames already replayed cannot be told
// from those that were not: that is ErrPurged, with the range, and never a gap or
// a repetition.
//
// # Order
//
//	by position   shard by shard (by month, then age), each in the order of its
//	              positions. Rows from ClickHouse that share one by (ts, id)
//	by time       the shards merged by the events' time, then by id. A frame's events are sorted;
//	              an event that its shard has behind later ones stays behind them
//
// By position is what speed "max" does and what needs least memory. By time is
// what a paced replay does, where an event is due when its time has come; it holds
// one unit of every shard that overlaps the present.
//
// # Who is authoritative
//
// The registry says which shards there are and which may overlap the range; the
// frames' headers and ClickHouse say what is in them. The ledger says what was
// erased: every unit is filtered by it, from either source. The job's own entry in
// the registry says how far it came, per shard: the number of the last unit that
// the sink has made safe. It changes by compare-and-set, so of two runs of one job
// one stops.
//
// # Repetition and loss
//
// A cursor is written after the sink's flush, so a resumed job never leaves
// anything out. What it may bring again, after a kill:
//
//	writer               what was written since the cursor, at most a second's
//	subject              the same; where a JetStream stream listens, Nats-Msg-Id
//	                     takes the repetition out within the stream's window
//	topic                nothing: producer and seq are derived from job, shard and
//	                     number, and the router remembers. Never more than
//	                     schemas.MaxInFlight numbers of a shard are beyond the
//	                     cursor, and it names what they are made of: when that is not
//	                     there any more (the janitor, an erasure), it is ErrPurged
//
// The same request into the same topic is one work, however often it is made: a
// job that has not ended is taken up again, and after one that has, the next
// replays only what was routed since. Requests that overlap and are not the same
// bring the events of both twice. The last registry.MaxJobs are remembered.
//
// A job that ends by itself or by its context leaves an exact cursor.
//
// # Failures
//
// What the caller got wrong wraps schemas.ErrRequest. A position that is in neither
// source is ErrLost with the range. A cursor that another run moved is
// registry.ErrConflict. All buffers are bounded in bytes (see maxAhead); a merge
// that would need more is ErrTooWide. Every wait ends with the context.
package replay
