// Package lines takes events as lines and JSON over HTTP:
//
//	POST /v1/topics/{topic}/events
//
// # Model
//
// The body is NDJSON, one JSON object, an array of objects, text, logfmt or CSV. The
// parameter format says which, else the content type, else the first byte. Decode is
// pure: package intake turns lines into records by the same rules as `almanac send`,
// whose options are parameters here under the same names (options.go).
//
// Values of an array are cut and counted before the first is decoded, and one reader reads them all.
//
// Every record is decoded before any is taken. So the answer names each refused line,
// and refuse=all takes all or nothing. An id that a client sends is kept as the attribute
// "id": the event's own is made here, because a reader drops the second of two events of
// one time and id.
//
// # The answer
//
//	200  {"accepted":n,"refused":[{"line","element","reason","message"}],"refused_total":n}
//	202  the same: with ack=none nothing is known yet; with ack=stored SQL does not have it yet
//	400  no record could be taken, or refuse=all and one was refused
//
// "no_time" counts the accepted that said no time and got now, and "time_fields" names keys of theirs that may have
// been meant for it. With 200 every accepted event is on disk (ack=stream), and SQL selects it (ack=stored).
// "repeated" says that a keyed request was stored before, and "erased_since" which erasures
// since then may have taken events of it: those are not stored again.
//
// # Failures
//
// Another body under an Idempotency-Key is 422 (keys.go): this gateway remembers for ten minutes what was sent
// under a key. Everything else is an error of package request. After 429 and 503 nothing was taken,
// unless the code is outcome_unknown.
package lines
