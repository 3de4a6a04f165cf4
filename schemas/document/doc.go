// Package document is what a document is: its identity, its versions and their wire form.
// It has no I/O, no clock and no goroutine.
//
// # Model
//
// The last message on a document's subject in the stream DOCS is its record: the present
// version, whole. Each version is one message, published under the expectation that the
// record before it is still the last. So it is state, history and compare-and-set at once.
//
//	Create ─▶ stored, version 1 ─▶ updated, version 2 ─▶ … ─▶ removed, version n
//
// A record that was archived is replaced by a stub, which says all but the body, and
// where the body is. A refresh is the same record again. Neither is an event.
//
// A document that was removed may be created again. It then goes on with version n + 1 while
// the removal is still in DOCS. Once that was archived and has left, the id is as new:
// another life begins with version 1. Sequences of DOCS tell lives apart.
//
// # Identity
//
// The lane of a generated id is the low bits of its first character pair's first byte, as
// the ids have always been spread (Lane). The lane of a free id is FNV-1a of it.
//
// # Failures
//
// A message that is not a record is schemas.ErrRecord. What a writer may not store is one of
// the errors in errors.go, with the number and the limit.
package document
