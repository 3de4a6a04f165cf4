// Package replay reads a topic's events again, in order, at a chosen speed, into a
// writer, a NATS subject or another topic.
//
// # Model
//
//	ClickHouse, what SHARDS lacks ─┐
//	                               ├─▶ units ─▶ open, filter, render ─▶ order ─▶ pace ─▶ sink ─▶ cursor
//	SHARDS, all that it has ───────┘
//
// A job replays what was routed when it began: the shards that may hold events of
// its range, each up to the last position it had then. A unit is a position: its frame, or
// its rows in ClickHouse, which are the same events. So it makes no difference which of the
// two has it, and a job may begin and end at any position.
//
// The janitor purges SHARDS from below, and an erasure takes frames out. A position that is
// not there is read from ClickHouse, whenever that is found. Of a position whose rows
// are all gone on purpose, as the shard's erasure record says, nothing is replayed. Where SHARDS lost a shard, or
// its end, ClickHouse says where it ends.
//
// # Order
//
//	by position   shard by shard (by month, then age), each in the order of its
//	              positions. Events of one are as the frame has them, or by (ts, id) from
//	              ClickHouse, and when they are paced or go to a subject or a topic
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
// the registry says how far it came, per shard: the last position that the sink has
// made safe, and of the next one up to which time and id. It changes by compare-and-set,
// so of two runs of one job one stops.
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
//	                     position, and the router remembers. Never more than
//	                     schemas.MaxInFlight positions of a shard are beyond the
//	                     cursor, and either source makes the same frames of them
//
// A frame that is larger than producers make them becomes several, which are numbered as parts.
// Where an erasure takes events of it between a kill and the next run, they are cut elsewhere,
// and an event at a cut may be left out or come twice.
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
// source is ErrLost with the range, also where it was lost while the job ran. A cursor that another run moved is
// registry.ErrConflict. All buffers are bounded in bytes (see maxAhead); a merge
// that would need more is ErrTooWide. Every wait ends with the context.
package replay
