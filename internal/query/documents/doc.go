// Package documents reads what is archived of documents, and joins it with what is not
// archived yet, so that a list is as fresh as a load.
//
// # Model
//
// Every version is a row in ClickHouse some time after it was accepted. A read begins with a
// snapshot of checkpoints and heads. That of a list may be half a second old (known.go): it
// knows less as stored, and nothing else changes. Then it reads two places side by side:
//
//	                              ┌─▶ DOCS above what the snapshot knows as stored
//	checkpoints, shards, heads ───┤
//	                              └─▶ ClickHouse
//
// A version that moves on meanwhile is met twice, and is the same version. One that has left
// DOCS in between is a stub there, and ClickHouse is asked again. Of a document
// the newest version wins, and a removal hides it. A list of changes asks one after the other.
//
// # Pages
//
// A page is the documents of one path by (created, id), the newest first. Both never change,
// so no document comes twice and none is passed over, while others are written. One statement
// reads keys and bodies; where many are on their way it is one for each. It reads a window of
// creation, as long as the page before suggests, and a longer one where that was too short
// (window.go). The row that ended a life of an id may be lost, erased or newer than the answer:
// DOCS tells which documents live. The cursor names the last document, and the path and range it
// is of.
//
// # Failures
//
// A read is complete or an error. A row that a stub names and that is not there is an
// error, and never "no such document".
package documents
