// Package verify proves that no accepted event is lost and none is stored twice.
//
// # Model
//
// For each shard it compares what the frames' headers say with the rows, ids and
// positions in ClickHouse. For each topic it adds stored rows, dead letters, repeats
// and what is still on its way, until the sum equals what was accepted. It reads
// downstream first: what is routed or stored meanwhile shows as pending, never as
// missing.
//
//	erasures ─▶ rows ─▶ erasures, entries ─▶ last frames ─▶ checkpoints ─▶ EVENTS above them ─▶ every frame's headers
//
// Of each topic a run reads first (look.go), compares shard by shard (compare.go), and adds up without
// any I/O (account.go).
// Run may be called while events flow. It changes nothing but its own proofs.
//
// # Proofs
//
// What is proven of a shard is kept in the registry. The next run takes it from there
// while the shard's parts, entry, erasures and last frame are the same, and reads headers
// of frames from where the last run ended (proofs.go, frames.go). docs/limits.md says what
// such a proof claims. Full takes nothing from it.
//
// # Who is authoritative
//
// None alone. The frames' headers say how many rows each position brought, and the sum of
// their ids and times (schemas.IDSumSQL); both together tell whether rows stand at their frames'
// positions (moved.go). Erasures note the sum of what they took. ClickHouse
// says what is stored. The registry says what was sealed, closed, dropped and erased,
// and readers prune by its ranges: it must cover the events. A difference names its
// exact range in Report.Problems.
//
// # Failures
//
// Damage is a problem in the report, and the rest is examined all the same: an entry that is
// not readable, a topic that the registry lost (Lost) or
// that ClickHouse refuses to count. An error means that the proof is incomplete: a server
// did not answer, or a read was cut. An unknown topic wraps schemas.ErrRequest.
package verify
