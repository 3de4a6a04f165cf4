// Package retention is the janitor: it purges from the streams what is stored and old,
// and drops or anonymises shards that are past their topic's retention.
//
// # Model
//
// It runs beside the sinks, in one process of all that run them (Config.Owns). Two that
// do so at once harm nothing: each step begins with what readers and sinks go by, the
// registry's entry, and may be done again.
//
//	EVENTS   messages that were routed KeepTime ago; a lane's last one stays, until its
//	         events are past retention and a blank message takes its place (blank.go)
//	SHARDS   frames that are stored, verified and older than the replay window; a shard's last one stays
//	SHARDS   checkpoints below the last of each lane
//
// Before frames go it notes in the erasures that are settling how far these cover the shard
// (erasure.Pin): afterwards nothing tells it.
//
// A stream that is nearly full gives up the replay window and most of the keep time
// before it must refuse what is new.
//
// While the streams are copied (streams.Copying) nothing is purged or dropped: the copy would lack it. A round that began before ends. Where a stream is
// nearly full it is all the same, and the copy is told so.
//
// # Retention
//
// The janitor takes each shard that is past its topic's retention one step a round
// (registry.Shard.NextStep): it retires an active one, and once that is sealed and
// closed drops it or clears its anonymised fields. Dropping:
//
//	mark dropping, with the floor ─▶ records out of DOCS ─▶ frames out of SHARDS, a tombstone left ─▶ DROP PARTITION ─▶ mark dropped
//
// Of documents the records in DOCS go before the rows (cleaner.Expire), since a stub without its row is
// an error to readers. A document is gone when its last record is. The shards of a lane of a front go
// in the order in which they were filled: of a document the rows that are left have the newest
// version, or there are none, so a repair of DOCS brings back nothing that went. Clearing waits until DOCS has
// the shard's records as stubs alone. It waits while an erasure is under way that may mean its events.
//
// Readers pass over what is marked, sinks go by the floor, and while rows are there
// no reader takes the frames for fresh ones. Each step may be done again: by the
// next janitor after a crash, or by two at once. Clearing is the same without a
// mark at its beginning: rows, then frames, then the entry, which tells it as erasures are let go on. A sink that stalled
// with frames in its hands may store them again after a drop, for ClickHouse
// forgets a partition's tokens with it. Each round looks at what is dropped, and at
// the closed shards that an erasure dropped whole.
//
// KeepMonth takes all months but one by these steps, for a restore of that month alone.
//
// # Who is authoritative
//
// The registry's entry says which step comes next. Whether it is due is asked again right before it: a shard is marked
// dropping in one step with the descriptor as it was read (registry.MarkPast), and fields are cleared where they still are to be. The time is the NATS server's or
// this machine's, whichever is earlier: a clock that runs ahead must not drop events.
// What may be purged is what ClickHouse has, compared with the frame at the head.
//
// # Failures
//
// A failed step is reported by Hooks.Fault and tried again in the next round; the
// others go on. Rows that differ from their frames, by count or at the head, keep the frames (ErrUnverified). A
// closed shard without its last frame keeps what it has (ErrGap). Nothing is purged or
// dropped while NATS cannot write (Config.MayPurge).
package retention
