// Package derived plays repeats and sums without a server: rows that come and go, workers that
// examine and sum them, several at once, each of which may die between two statements, and a
// reader that is asked after every step.
//
// # Model
//
// A row has a cause; of rows with one cause the least by time and id counts. World holds what
// ClickHouse has: rows by shard and position, marks (<topic>.repeats), how far each shard was
// examined and how many rows it had then, and sums. A statement is one step and sees one state
// of the tables. Between the statements of a worker anything may happen. The statement that says
// how far a shard was examined is two steps: others come between what it asserts and its end.
//
// The reader goes by the rules of package query/usage: sums where every row was examined and
// they stand for the rows there are, else rows without those that are marked and without those
// that it finds itself because of rows that were not examined. Its answer must always be that
// of the rows alone.
//
// # Who is authoritative
//
// The rows are. Each guard of tables and rollups has a switch in Mutants that leaves it out,
// and a test that needs the reader to be wrong then.
//
// # Failures
//
// A schedule is made of a seed. A run that goes wrong returns the step and both answers.
//
// Retention looks and drops in two steps, as registry.DerivedDropper has it: it looks whether the shard
// is summed and the others are examined as far as they had rows when it first looked, and drops
// if no drop of what was derived took a lease meanwhile. What the shard counted when it looked
// stays so, and so do the copies that were known. A copy that comes between the two is as one
// that comes after the rows are gone. The lease of a worker that died stands until it lapses.
//
// An erasure takes rows and drops what was derived in one step here: in between, readers go by
// the ledger. A repair adds rows at examined positions, and may die before it drops what was
// derived.
package derived
