// Package sinks writes each frame to ClickHouse once.
//
// # Model
//
// One watcher follows the headers of SHARDS: first the last frame of every
// shard, then each new one. So a sink knows each shard's tail without reading a
// payload, and, against the head in ClickHouse, how much of it is missing. A
// shard is due when enough is missing or when it has waited long enough. Then
// its frames are read from the stream, in order from the head, and stored by one
// insert, which is one block, one partition, one part.
//
//	watch headers ─▶ schedule: tail, head ─▶ due? ─▶ fetch frames ─▶ check ─▶ insert ─▶ read the head back
//	                   ▲                                                                   │
//	                   └───────────────────────────────────────────────────────────────────┘
//
// Each insert keeps a processor of ClickHouse busy, which may be one that the streams,
// the router and queries run on. While none waits for long they take turns, half of
// the slots at a time. Once one has waited for Config.MaxQueueWait, all slots are used
// (limiter.go).
//
// # Who is authoritative
//
// The head in ClickHouse, and nothing else. There are no consumer acks and no
// state on disk. A sink that starts asks ClickHouse where each shard stands. Of
// two sinks with the same shard one insert wins: all inserts that follow one head
// are one query to ClickHouse, which runs one of an id at a time, and each asserts
// that the head has not moved. The token, which names the head too, keeps out the
// insert that was sent twice. The frame at the head is compared with what is
// stored there when a sink begins, so that a stream which gave its positions again
// is noticed.
//
// A table that has fewer rows than at the last look, every 15 s, may have been truncated
// or dropped by hand. A ClickHouse whose uptime is shorter than expected has restarted, and may have been
// restored from an older copy. All heads are read again, and a shard whose head lies
// below what this sink saw stored is looked at as if the sink had just started.
//
// All of that holds on one server. Before a sink does anything it finds out that the
// engine which has the cluster's rows answers (tables.DB.Establish), and when another
// refused a request it stops until that answers again.
//
// # Forks
//
// SHARDS may be restored from an older copy while ClickHouse has what came after it. A router
// cannot see that, and gives positions again to other frames. So a sink compares the last frame of
// each active shard with ClickHouse when it begins to watch SHARDS, after each outage of NATS, and
// where a new frame seems to be stored already (fork.go). A shard that forked leaves its lane. Its
// router seals it, and then the sink that owns it settles it (forkmove.go):
//
//	differ ─▶ registry.Leave ─▶ router seals ─▶ decide, once ─▶ frames that ClickHouse lacks: to a new shard
//	   ─▶ delete them here ─▶ erasure record ─▶ the shard ends where ClickHouse has it ─▶ closed
//
// Rows of frames that SHARDS lost stay, and count as accepted (registry.Fork.Kept). Frames of a front's
// lane are not moved: its records are there, and are routed again from behind the last one stored.
// A shard of which ClickHouse only has more is left alone. Its lane may give the same positions to the
// same frames, which EVENTS still has.
//
// # After an insert
//
//	answer    head read back   meaning                           then
//	any       moved            stored, by us or by another       go on from the head
//	OK        not moved        the token was burnt by a crash    next attempt, same rows
//	error     not moved        nothing was stored                back off, same attempt
//
// A batch is bounded decompressed too: one insert must stay one block, or a crash
// between its parts would lose the later ones.
//
// The head may move less far than the batch went: an erasure took the last frames' rows
// since, or the ledger left none of them. Then the floor says what is stored beyond.
//
// # Merges
//
// ClickHouse merges small parts as they come. Those of full batches stay until the
// shard is closed, and then the sink has them merged at once (merge.go). That is
// work spared, never needed: ClickHouse merges by itself what was quiet for hours.
//
// # Failures
//
// A position missing or repeated in SHARDS, or a frame that does not name its
// predecessor, stops that shard with ErrGap and the exact range. Another frame at
// the head is ErrForked, until the shard is settled; where ClickHouse lost the rows since the head was read, they are stored again
// (ErrWentBack). A shard of a front of which ClickHouse lost rows after it left its lane keeps its frames in SHARDS, and so does
// any whose rows went after it was examined: restore the table from a copy that has them. The others go on. A message that is
// not a frame is skipped. A refusal by ClickHouse stops the shard the same way until it succeeds.
// Nothing is skipped. What leaves the streams and the tables again is
// internal/maintenance/retention's.
package sinks
