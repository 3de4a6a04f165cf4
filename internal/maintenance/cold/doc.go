// Package cold moves closed shards to the cold volume of their table, and back.
//
// # Model
//
// A topic's cold_after_days says which closed shards belong there: those whose youngest event is
// older. Every other closed shard belongs on the first volume of its table's storage policy.
//
//	parts of a shard where it belongs       nothing to do
//	any part elsewhere                      MOVE PARTITION … TO VOLUME
//
// So a shard moves back when the option is taken away or made longer, and rows that a repair
// inserts follow the others. What is derived from a topic, such as sums and series, stays near.
//
// # Crash points
//
// There is no state but where ClickHouse has the parts. It copies a part, then the copy takes its place:
//
//	policy given to the table     the next round moves
//	some parts moved              the next round moves the others
//	a copy that is not whole      the engine removes it when it starts
//
// # Who is authoritative
//
// The registry's entry says that a shard is closed and how old it is, system.parts where it is.
//
// # Failures
//
// A shard that retention is about to drop or clear is left alone. A part that a merge holds, or that an erasure
// replaces meanwhile, makes the statement fail: it is reported, and the next round tries again. A topic without such a
// volume is reported each round (tables.ErrNoCold). Rows can be lost in one way: a power cut in
// the half minute after a move (docs/operations.md).
package cold
