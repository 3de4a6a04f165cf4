// Package repair finds what was damaged and heals it from what still holds the
// events.
//
// # Model
//
// An accepted event is kept in up to four places: EVENTS (until ten minutes after
// it was routed), SHARDS (a replay window), ClickHouse, and, by its shard's entry,
// the registry. A plan compares them, shard by shard, and says which of the others
// can give back what one lost. Planning changes nothing. What it decides it
// decides in functions without I/O (chain.go, compare.go, entries.go, and
// shardPlan in shard.go).
//
//	look: counts, frames' headers, registry ─▶ compare ─▶ plan ─▶ apply ─▶ plan again: what is left is lost
//
//	lost                                    given back by
//	rows below the head                     SHARDS, EVENTS             Insert
//	frames above the head, in a gap         EVENTS                     Store
//	rows doubled                            the table itself           DropCopies
//	rows that no frame brought              SHARDS, EVENTS             DropStrange, Insert
//	rows at others' positions               SHARDS, EVENTS             Insert, DropMoved
//	a registry entry, or its numbers        SHARDS' headers, tables    Restore…, CorrectShard
//	a checkpoint                            SHARDS, EVENTS, tables     RestoreCheckpoint
//	a front's lane's checkpoint             SHARDS' headers, the table RestoreCheckpoint, first
//	what a document is now, in DOCS         the table                  AdvanceFront, PutAgain, RestoreStubs, DropMisplaced
//	frames that only ClickHouse has         the table                  LeaveShard
//	what a timer is now, in TIMERS          the table                  DropEnded, AdvanceFront, PutAgain, RestoreTimers, DropMisplaced
//
// # Frames that SHARDS lost
//
// A stream takes no message in its middle, so a frame that SHARDS lost and EVENTS
// still has is not published again: its rows go straight into ClickHouse, under
// its position. Published to a new shard instead, the same event would have two
// places, and to tell which of them was stored when a repair was killed between
// the two would need a third. Its rows are known by what they are, in one table,
// by one statement. The positions are entered in the shard's erasure record as gone from
// SHARDS, so that verify counts them as settled.
//
// Which message of EVENTS a lost frame was is proven, not guessed: the frame
// behind the gap names its predecessor's digest, and the totals in the headers on
// both sides say how many frames and rows the gap had.
//
// # When SHARDS lost its end
//
// A server that was killed cuts the stream at the first message it cannot read.
// Frames behind the cut that ClickHouse has are settled: their shard is sealed at
// its head in ClickHouse, the new checkpoint passes their messages over, and last
// of all the erasure record has their positions. Until then the lane's router waits (see
// router/ends.go). From then on ClickHouse, and the closed entry, tell what the
// shard has. Frames behind the cut that ClickHouse has not are routed again: a lane holds
// several months, whose sinks are not equally far, so the checkpoint stops before the first
// message that is not stored, and names those above it that are (passstored.go). Where EVENTS
// lost its end, and no trace tells what was routed, it is the same. Where SHARDS is lost, so it is with
// the records of a front's lane (frontpass.go): a plan holds 8 bytes for each that one month's sink had
// stored and another's may not.
//
// EVENTS lets go of what was routed ten minutes later. Where SHARDS lost a lane's end after that, and ClickHouse went
// back as well, nothing holds those events. The registry's copy of the checkpoint tells how many rows each shard had:
// what is stored, what erasures took and what EVENTS still has is taken off, and the rest is lost, and named.
//
// The last rows of a shard may all have been erased. Its erasure record and its floor tell that they
// were stored, and its next positions follow those. Where ClickHouse went back below them, what
// is missing there is lost all the same.
//
// Where ClickHouse went back behind what SHARDS still holds, what the janitor
// purged between the two comes from EVENTS when the frame behind it proves that it
// is the same, and else is lost, with its positions.
//
// # Ranges of restored entries
//
// The router of an active shard remembers the range that it wrote, and writes it again only
// when an event lies outside. Readers prune by the entry: a narrower one would hide what
// the router adds later. So an active shard gets its whole month, until closing it makes the
// range exact. Until then readers open it more often than they need to, and retention, which
// counts from the end of the range, may retire it up to a month late.
//
// # Once, whatever is killed
//
// Store is the sink's own insert: it asserts the head it follows, and all inserts
// after one head are one query id to ClickHouse. Insert counts, in the statement
// that inserts, how many rows equal to each of the frames' the table has, and adds
// only what is short of it. DropCopies writes a new partition beside the table
// and puts it in place in one step. Registry entries and checkpoints are written by
// compare-and-set. So each action is done or not done, a second time does nothing,
// and a repair that was killed leaves a shorter plan.
//
// DropCopies on a shard that is being written to begins again when rows came meanwhile, and gives up after ten times.
// Between its last look and the exchange, milliseconds, a sink's insert could still
// be lost with the old partition. SHARDS has it, and the next plan brings it back.
//
// # Timers
//
// A timer that is pending or firing by its history and that TIMERS lost is written again, as
// a record of its own: what was firing is due now, under the number of the attempt that was under way.
// One that ended by its history goes, before TIMERS goes on: until then no dispatcher calls anything.
//
// Records that TIMERS took under sequences that were routed before are put again, since no router would
// read them: once TIMERS has gone on above these sequences, so that no process writes below what was looked
// for. A mark, which stays until then, says up to where TIMERS had been routed (frontends.go): checkpoints
// no longer do once the routers go on.
//
// # Documents written on older ones
//
// DOCS may be restored from an older copy, and take documents before that is noticed. A young record becomes the
// version after the newest that ClickHouse has, under a sequence of its own: it was acknowledged last. Of
// several young versions of one document the last stays (frontagain.go).
//
// # What must not come back
//
// Rows an erasure took, by the ledger and the shard's erasure record: a message of EVENTS that erasures
// took whole is not routed again. Everything of a shard that retention dropped. Everything at or below a shard's floor.
//
// So the ledger comes first: `almanac repair` has its copies agree before it plans. A topic that the
// registry lost is left alone where every copy of the ledger is lost with it (Config.NothingErased).
//
// # What is not the topic's
//
// A shard that the registry does not know is adopted when the checkpoints routed more than
// the other shards have. Otherwise a client or a hand made it: it is named and left alone
// (foreign.go).
//
// # Failures
//
// What no source holds is an action Lost, with its exact positions. What follows it
// is stored all the same. An action that fails does not keep the others from being
// done. A plan holds about 150 bytes for each frame SHARDS has of one topic.
package repair
