// Package query reads events back: pages in time order, the live tail, SQL, the
// registry as a table, and dead letters. It changes nothing.
//
// # Model
//
// An accepted event is in one of three places: in EVENTS above its lane's
// checkpoint, in SHARDS above its shard's head, or in ClickHouse. A page reads
// the three in that order, the way the event moves, and drops by id what it met
// twice. So an event is found as soon as it was accepted, and never vanishes or
// doubles while it is handed over.
//
//	checkpoints ─▶ EVENTS above them, registry ─▶ of each shard: head ─▶ SHARDS above it ─▶ ClickHouse
//
// Package recent reads the first two, and its types keep the order: rows are read with what
// it found above the heads. Pages, counts and histograms share walk, which goes through the
// steps. A search (search.go) is a page of up to eight topics, merged by time: each is read as a page by
// itself, and its cursor is theirs together (leg.go).
//
// Completion (completion.go) lists the fields of a topic and the values of a field for who types a filter,
// from a sample: the newest events. Facets count the values of all events that a filter
// selects in the shards that are read.
//
// A reader by New is for one verb. One by NewFollowing serves many queries, and while Run
// runs reads ahead of them over a second connection. Close releases that. What a page opens
// of the frames is bounded by what it needs, not by how many wait.
//
// ClickHouse decides every filter, so that a fresh and a stored event are evaluated alike:
// fresh frames are handed to it with the statement. A page does without where the frame
// itself says surely the same (evaluated, filter.Evaluator). A property holds the two together,
// result by result and byte by byte (evaluated_test.go).
//
// # Who is authoritative
//
// The registry says which shards may overlap a time range. The frames' headers
// say which frames lie above the heads. ClickHouse says what is stored.
//
// # Failures
//
// What the caller got wrong wraps schemas.ErrRequest. A page that had to leave fresh
// frames out says so in its notes. Lag and Status answer while a server is away with what is known
// without it, and a Reader remembers since when that is (away.go). Every call ends with its
// context.
package query
