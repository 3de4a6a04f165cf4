// Package documents reads what is archived of documents, and joins it with what is not
// archived yet, so that a list is as fresh as a load.
//
// # Model
//
// Every version is a row in ClickHouse some time after it was accepted. A read goes in
// the order in which a version moves:
//
//	Archived (checkpoints, heads) ─▶ DOCS above that ─▶ ClickHouse
//
// A version that moves on meanwhile is met twice, and is the same version. Of a document
// the newest version wins, and a removal hides it.
//
// # Pages
//
// A page is the documents of one path by (created, id), the newest first. Both never change,
// so no document comes twice and none is passed over, while others are written. The page is read in two
// steps: keys, then the bodies of those on it. The cursor names the last document, and the
// path and range it is of.
//
// # Failures
//
// A read is complete or an error. A row that a stub names and that is not there is an
// error, and never "no such document".
package documents
