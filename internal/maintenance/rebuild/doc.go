// Package rebuild fills a new table for a topic, from SHARDS and from the old table,
// and puts it in the old one's place while sinks run.
//
// # Model
//
//	fill     the fresh table <topic>.rebuild is made and filled, shard by shard, behind
//	         its own head: frames that SHARDS still holds are inserted as a sink does,
//	         older rows are copied. Sinks go on in the old table; a pass follows the
//	         other until one finds little left
//	freeze   a constraint makes the old table refuse every insert, and inserts under way
//	         are waited for. From here its heads stand still; sinks back off, frames
//	         wait in SHARDS
//	check    the last rows are brought over; every shard must have the same head and the
//	         same rows in both tables, or what its frames brought
//	swap     EXCHANGE TABLES: the fresh table has the topic's name, at once
//	keep     the old table, which still refuses inserts, is named <topic>_before_<time>
//
// A batch ends at a position that the old table has rows of, so that the fresh head is
// there afterwards. Every row keeps its position, and frames and copies fit together at
// any.
//
// # Why a sink cannot lose or double
//
// A sink asserts, inside its insert, that no row of the shard stands above the head
// it knows. It does not assert that the head itself is there, so a swap under a
// running sink would be a gap if the fresh table were behind. It never is: the swap
// comes after the freeze, when no head moves, and after every head was compared. An
// insert that is sent before the swap and arrives after it finds the head it knows.
// One that was stored in the old table and is sent again finds the assertion.
//
// # Crash points
//
// There is no state but the tables', so a rebuild that was killed is begun again:
//
//	topic      <topic>.rebuild   it was killed                 the next run
//	open       missing           before it began, or at its end begins
//	open       open              while it filled               fills on, behind the fresh heads
//	frozen     open              after the freeze              catches up, checks, swaps
//	open       frozen            after the swap                keeps the old table
//
// (open: takes inserts; frozen: has the constraint.) While the topic's table is
// frozen nothing is stored: run it again, or --abort, which opens the old table and
// drops the fresh one.
//
// # Erasures and retention
//
// The fresh table has the old one's storage policy, and each shard moves to the cold volume when it is filled, if it lay there.
// A shard that an erasure or retention touched is copied and never inserted from
// frames, which may still hold what is gone. What is erased while the fresh table
// is filled shows in the check: the shard is copied again. A rebuild does not begin,
// and does not swap, while an erasure is at work or fields are cleared, nor where fields were cleared after the check
// began: ErrBusy. An erasure that is entered at the moment
// of the swap waits longer than the swap may take, and finds the fresh table.
//
// # Failures
//
// Counts that differ refuse the swap: ErrDiffers with the shard. So does a shard that the old table has no more, where
// nothing says that it was dropped: the fresh table may have the only copy. The old table is
// opened again and nothing has changed. Every call ends with its context. Ending it
// while the table is frozen opens it again.
package rebuild
