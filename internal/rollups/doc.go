// Package rollups fills what is derived from the rows of topics: which events came before and
// do not count (<topic>.repeats), the sums of a meter's diffs (<topic>.sums), and the series of
// a metric's points (<topic>.series).
//
// # Model
//
//	sinks ─▶ <topic> ─ examine above P ─▶ <topic>.repeats ─ fill above P, up to what was examined ─▶ <topic>.sums
//
// Everything goes by positions. Each derived table says of each shard up to which position it
// has its rows: a row of its own, written after the marks or with the sums. There is no other
// state. Each round reads the positions and takes each shard of this process a step further,
// at most BatchRows rows. New rows of all shards of a lane are looked for repeats together, since that reads
// the identities of the whole lane: all copies of an event have one lane (schemas.LaneOf).
//
// Repeats: of the events that are equal in the columns of schemas.Topic.Once the least by
// (ts, id) counts, or the one with the greatest id where the kind says that the last one wins.
// The others are marked, in whatever shard they stand. A pair of equal
// events is found by whichever is examined later, because both were stored before. Marking
// twice is the same row. So examinations may run in any order, twice, and side by side. One
// whose earlier marks were dropped meanwhile does not say how far it came: the first
// examination of a shard draws an epoch, which goes with the marks, and the position asserts it.
// A drop waits for positions that were asserted before it, and takes them too.
//
// Sums: additive by shard. A fill is one statement and one part. It asserts that the sums end
// where it begins and that the shard was examined up to where it ends.
//
// Series: names, labels, first and last time. Filling twice is the same. A fill asserts that
// the list stands where it did when the round began: it may have been dropped since. The list of a dropped shard is dropped in the next round.
//
// # Who is authoritative
//
// The topic's rows are. Readers look for repeats themselves in rows above what was examined,
// and take rows above what was summed. So nothing that is missing here changes an answer.
//
// # What makes derived rows wrong, and what mends them
//
//	a repeat is marked in a part that was summed   the round drops the shard's sums and fills again
//	rows go or change: erasure, anonymising,       the verb drops what was derived (derived.Tables.Drop),
//	repair                                         which is derived again
//	rows are lost and stored again                 nothing: a frame's rows have its position again
//	rows or parts of a derived table are deleted   marks and series are as many as when they were last noted,
//	                                               or they are dropped and derived again; a lost table is made
//	anything else                                  sums and repeats are as many as rows up to their
//	                                               position, or they are dropped and filled again
//
// Sums of which that does not hold are not believed by readers either.
//
// What cannot be derived again is never dropped: the sums of shards whose rows retention
// dropped, and the marks of copies whose event that counts was in one. A drop and retention
// exclude each other by a lease of the drop (registry.DerivedDropper).
//
// # Failures
//
// A step that fails is reported to Hooks.Fault and tried again in the next round, with the shards
// that were looked through by the same statement; other shards go on. Every statement is bounded by StatementTime.
package rollups
