// Package tables is the way to ClickHouse: the tables of topics, their heads,
// the sinks' insert, and reads.
//
// # Model
//
// One table per topic; a partition is one shard. The head of a shard is the
// highest pos in its partition. Insert is one HTTP POST: the frames' bytes as
// they are, month, shard and each frame's pos added by the server, and in the same
// statement the assertions that the head has not moved and that the frames brought the
// rows that their headers say (frames.go).
//
// DDL, heads and plain reads go through clickhouse-go. The insert and reads that
// carry frames (or stream their answer) go through net/http, because clickhouse-go
// cuts the SELECT with its assertion off an insert and cannot send compressed
// blocks as they are.
//
// Conditions come with parameters, which travel as fields of the request. Where erasures or
// filters make more of them than ClickHouse takes, their values are written into the statement,
// and a long statement does not travel in the address (long.go). So what the ledger took can be
// asked of any ClickHouse.
//
// # Which server
//
// An assertion holds on one server. So each request names the engine that has the
// cluster's rows, by an empty database that only this server has (engine.go), and
// another server refuses it before it runs anything: ErrOtherEngine. The registry
// keeps which engine that is; Establish finds out whether it answers, names the first
// one, and gives a lost one's place to an empty one. The comment of that database has the
// number of the format. Establish refuses another, schemas.ErrFormat. Readers name the
// engine that the registry keeps, so they read one that was compared. A table with
// replicas is ErrForeignTable (foreign.go).
//
// # Who is authoritative
//
// ClickHouse is: what Head answers is stored. An insert's own answer proves
// nothing, neither success (its token may have been burnt by a crash) nor
// failure (it may have committed before the answer was lost). Callers read the
// head back.
//
// # Failures
//
// What ClickHouse refuses comes back as *Error with its code; a moved head is
// ErrHeadMoved, an insert that came too late ErrTooSlow, one with other rows than its
// frames say ErrRows, one for a table that is gone ErrReplaced, no room ErrNoSpace. A
// request without an answer is ErrUnreachable; while the breaker (package watchdog) is open,
// requests fail with it at once, and Wait waits for the server. A server that vanished
// from an open connection is ErrVanished. Classify says what to do after
// each. Every call ends with its context.
package tables
