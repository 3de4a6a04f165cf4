// Package api serves reads over HTTP as JSON, NDJSON and server-sent events, writes timers
// and documents, and begins long works as jobs. Package operations declares every route with its parameters and answers.
//
// # Model
//
// A read is one call of package query, whose answer it passes on as it is. The parameters
// are the flags of the verbs, under the same names (params.go). A handler asks params.end, which returns the first wrong
// parameter and refuses one that the route does not have. Each file has the routes
// of one subject and a function that adds them (API.Add). /openapi.yaml is made when it is first asked for, of the
// declarations and of the Go types of bodies and answers (answers.go).
//
// A page is a JSON document, or NDJSON where the client accepts that; then the header
// Almanac-Cursor continues it. A tail is server-sent events, whose ids are positions, or
// NDJSON with the position under _pos. SQL streams in any format of ClickHouse.
//
// Erasures, replays and retries of dead letters are jobs (package jobs): the answer is 202
// with the job's id. An erasure is in the ledger before it is answered, so from then on no
// reader returns its events. verify runs once for all who ask, and its answer is kept for
// proofAge.
//
// Timers and documents are read and written by packages timers and documents, for each
// topic by one that stays open (opened.go). A write is answered once its record is on disk.
// An ETag is a timer's revision or a document's version.
//
// # Who is authoritative
//
// The registry has jobs and erasures. A job of an erasure names only its entry in the
// ledger, so that redacting the entry forgets whom it named.
//
// # Failures
//
// Errors have the shape of package request. An error after the first byte of an answer
// ends the connection, so that half an answer is not taken for a whole one. Reads, tails
// and statements under way are bounded, and a client takes its answer at a pace (request.Pacing).
package api
