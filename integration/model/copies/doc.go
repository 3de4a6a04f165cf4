// Package copies plays the copies of the ledger without a server: the registry's bucket, its
// second copy, and ClickHouse's, under crashes, losses and older copies of each.
//
// # Model
//
// A World has some erasures, each of one person with one row and one frame. Its steps are those of
// internal/registry/copies.go and internal/maintenance/erasure/third.go: enter, note, take the row, mark, end,
// forget, reconcile, adopt, carry out again. A crash ends an operation between two of its steps.
//
//	damage ─▶ bucket lost or older │ its copies lost or older │ ClickHouse lost or older
//
// One of the three is damaged until they agree again, or the bucket with one other: of what all
// copies lost nothing tells.
//
// # Checked
//
// Once an erasure was acknowledged no reader shows its row. Once it was forgotten it is in no ledger
// again. Each Mutant takes one guard away, and a run must then find a fault.
package copies
