// Package documents stores, loads, updates and removes JSON documents by id, with
// compare-and-set. Every change is an event that the pipeline archives.
//
// # Model
//
// The stream DOCS is the front of all documents (package fronts): the last message of a
// document's subject is its record, which is the present version whole. A write goes by the record that it
// read, and publishes one message that expects it. A create expects none, and is sent without the read unless
// ids were taken of late. Another write expects what the process wrote or loaded last (remembered.go), and
// reads where that is not known or was refused. Acknowledged means
// accepted: on disk, visible to every load and list, and on its way to ClickHouse.
//
//	Create, Update, Remove ──▶ DOCS ──▶ router (the mover) ──▶ SHARDS ──▶ sinks ──▶ ClickHouse
//	                 Load ◀──────┘                                                      │
//	                 List ◀── what is not stored yet, then what is ◀────────────────────┘
//
// # States of a document
//
//	(none) ── Create ──▶ stored ── Update ──▶ updated ⟲ ── Remove ──▶ removed ── Create ──▶ stored …
//
// Versions count from 1 and go on after a removal while that is in DOCS, hot_for at least.
// Then the id is as new, and a Create begins at version 1 again. Created stays
// from one Create to the next; a Create may give it, so two lives of an id may have the same.
// Sequences of DOCS tell them apart. Changed grows strictly with each version.
//
// A document keeps the path of its Create. A change that names another one is *PathError.
//
// # Who is authoritative
//
// DOCS is, for what a document is now: also where its body is archived alone, a stub is
// its record. So uniqueness and compare-and-set hold for cold documents too, and writing
// never needs ClickHouse. ClickHouse is authoritative for earlier versions, and for the
// bodies that stubs name.
//
// # Failures
//
// A condition that does not hold is ErrExists, ErrNotFound, *PathError or *VersionError: nothing was
// written. A full front is fronts.ErrFull. An answer that did not come is found out, or is
// fronts.ErrUnknown: load the document. A body that only ClickHouse has, while ClickHouse
// does not answer, is ErrArchive and never "not found". A DOCS that lost records is
// ErrLostFront.
package documents
