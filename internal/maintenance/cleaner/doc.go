// Package cleaner takes out of the fronts what is stored in ClickHouse. Without it DOCS
// and TIMERS would grow until they refuse.
//
// # Model
//
// It walks each lane of a front in the stream's order, by headers, up to what is stored
// and old enough:
//
//	look ─▶ rows read back, by one SELECT ─▶ what came after the look ─▶ decide ─▶ stub, refresh, purge
//
// The look met every record of a key up to where it came, so a key's last message is the last
// one met, unless one came after. Bodies are read of what is refreshed alone. A walk does not
// begin before what ended the last one is stored and old enough.
//
// A stub takes the place of a key's last record, and of all before it: it says all but
// the body, and where the row is. A refresh is the last record again, of a key that stays hot
// and has older versions. Both expect the message that was read, and go in atomic
// batches. A key that is over is purged up to its last record. What decides is
// a function without I/O (decide.go), and what tells the kinds apart a value (records.Kind).
//
// Retention has it take out what has its row in a shard, before the rows go (expire.go).
//
// # Who is authoritative
//
// ClickHouse is, for what is stored: a record leaves only after its own row came back,
// and said the same id, version, time and length. Positions and heads only say how
// far it is worth to look. The front is, for which record of a key is the last. The marks
// up to where a lane was walked are kept in memory, and are a hint.
//
// # Settle
//
// Every record stays for the settle time at least. A writer whose answer was lost finds
// its own record by then. Readers need no such time: the row is there before the record
// leaves, and a reader that meets a stub of what it did not know as stored asks ClickHouse again.
//
// # Failures
//
// One runs, in the janitor, by lease. Two at once are safe: of two stubs of a key one is
// refused, and purges may be done twice. A crash between any two steps leaves a key
// as it was, or done. A writer that read a record before it became a stub is
// refused, and reads again. ClickHouse away: nothing leaves. A record without a row
// became a dead letter, or its row was lost: its key stays as it is, and is looked at
// again within the hour. With more than 10,000 of those the lane stops (ErrNoRow).
// A full front takes stubs one by one when it takes no batch.
package cleaner
