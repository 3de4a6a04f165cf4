// Package front plays the protocol of a front against crashes and lost answers: writers,
// movers, a sink, cleaners and readers over one lane of documents, without a server. One
// seed decides what happens.
//
// # Model
//
//	writer ─▶ front ─▶ mover ─▶ frames ─▶ sink ─▶ table
//	            ▲                                   │
//	            └── stub, refresh, purge ◀─ cleaner ┤
//	            └── purge ◀───────────── retention ─┴─▶ drop
//
// A part is a coroutine that stops whenever it asks a server something (parts_test.go). The
// world picks who goes on. It ends a part there and starts another in its place, lets an
// answer be lost, and has a part sleep through many steps. Two movers and two cleaners are at
// work at once. The front and the table (world_test.go) are the servers: each request is
// atomic.
//
// # Oracle
//
// A version that a writer was told has one row, with what that writer wrote. Versions of a
// document have no gap. No call became two versions, and no batch is stored in part. A lock has
// one holder, and nothing is stored under one that was lost. A stub's row is in the table when
// the stub is written, until retention drops it, and nothing in the front stands for a row that
// it dropped. Of a document it leaves the newest version, or nothing. A reader finds at least what was acknowledged before it began, and no
// document whose removal was.
//
// # What the protocol stands on
//
// mutants_test.go removes each guard in turn, and TestMutants expects to be told. A guard
// that another one covers may go alone, and not with it.
//
// # What is not modelled
//
// Bytes, months, group commit, erasure. Shards are those of one lane, which retention takes in their order. The mover's shards and the sink's insert
// are package model's.
package front
