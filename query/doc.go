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
// Positions are read first: a frame routed or stored afterwards is met in both
// places, one routed or stored before is in the later one. The janitor purges
// neither stream so early that a read could miss a frame between the two. walk
// is that order. Pages, counts and histograms share it.
//
// A reader by New is for one verb: each query reads checkpoints and heads itself, and
// nothing runs in the background. One by NewFollowing serves many queries: it goes by
// what it read some seconds ago, keeps the headings of frames above checkpoints and heads
// (directory, feed, track), and while Run runs reads ahead of queries over a second
// connection. Close releases that. What a page opens of the frames is bounded by what it
// needs, not by how many wait.
//
// ClickHouse decides every filter, so that a fresh and a stored event are judged alike:
// fresh frames are handed to it with the statement. A page does without where the frame
// itself says surely the same (judged, filter.Judge). A property holds the two together,
// verdict by verdict and byte by byte (judged_test.go).
//
// # Who is authoritative
//
// The registry says which shards may overlap a time range. The frames' headers
// say which frames lie above the heads. ClickHouse says what is stored.
//
// EVENTS may lose its end and give its sequences again, and a checkpoint then stands
// above what is accepted since. A query decides where the lane goes on as its router
// will (fit.go), so it shows those events before the router resumes.
//
// # Failures
//
// What the caller got wrong wraps schemas.ErrRequest. A page that had to leave fresh
// frames out says so in its notes. Every call ends with its context.
package query
