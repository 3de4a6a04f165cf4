// Package registry says who may write where. It stands on one JetStream KV
// bucket, and every part of Almanac that reads or writes shards asks it.
//
// # Model
//
//	topics.<topic>             the topic's descriptor
//	<topic>.<YYYY-MM>          the head entry: the active shard of each lane
//	<topic>.<YYYY-MM>.<shard>  the shard's entry: lane, range, status, numbers
//	leases.<role>.<member>     who is alive, to share the work
//
// # States of a shard
//
//	          Place, Rotate               Seal                  Close
//	(nothing) ─────────────▶ active ─────────────▶ sealed ─────────────▶ closed
//
// active: its lane's new frames go there. sealed: no frame stands above
// SealedAt, ever. closed: all of it is stored; its numbers are final and exact.
//
// # Who is authoritative
//
// The head entry alone says which shard is active; it changes by compare-and-set
// together with the entries it concerns, in one atomic batch on the bucket's
// stream. A shard's time range is widened before frames that widen it are
// published, so it always covers the truth and reads may prune by it. Rows and
// bytes are estimates until the shard is closed.
//
// Leases only spare double work. Nothing is unsafe when two processes believe
// they own the same lane or shard: the router's checkpoint and the sink's head
// are compare-and-set, and the loser starts over.
//
// # Failures
//
// A lost race is ErrConflict: read again. A lost bucket is ErrNoRegistry: nothing
// is placed until somebody restores it. Every call ends with its context.
package registry
