// Package router gives each frame a shard. It reads lanes of EVENTS in order and
// publishes to SHARDS. Between the two it decides, and keeps nothing of its own.
//
// # Model
//
// A lane is one (topic, lane) pair over all months. One router at a time works a
// lane. The registry's members share lanes out. For each batch of messages the
// router checks every frame, asks the registry for the active shard of the
// lane's month, numbers the frame inside the shard, and publishes one atomic
// batch: frames, dead letters and, last, its checkpoint.
//
// The lanes of a router keep to one beat and commit together: their parts go out as one
// atomic batch (group.go). A part keeps its own expectations. When the batch is refused,
// each part is sent again by itself, so that a lane that lost its race stops alone.
//
//	EVENTS ── gather ──▶ evaluate ──▶ place ──▶ atomic batch {frames, dead, checkpoint} ──▶ SHARDS
//	              ▲                                                  │
//	              └────────────── start at checkpoint + 1 ◀──────────┘
//
// # Who is authoritative
//
// The checkpoint, the last message on routed.<topic>.<lane>, says what has been
// routed. It is in the same batch as what it speaks of, so the two cannot
// disagree. The tail of a shard, its last message, says the shard's position,
// rows and bytes. Both are compare-and-set by expected-last-subject-sequence: of
// two routers with the same lane one commits and the other starts over.
//
// A decision uses only the message, its stored time and the registry, never the
// local clock, so a re-run decides the same.
//
// # Privacy rules
//
// A producer applies the rules that its topic had when it started, and its frames' schema version says which those
// are. The router makes a frame again that lacks newer ones (ruled.go), so it is the last gate: nothing is stored
// without a rule that the router read. Its lease says up to which revision of the registry every lane and sweep of it
// goes by the topics (reading.go).
//
// # Ids
//
// Where a topic has events once, rows are named by id, shard and position. A frame that has an id twice becomes several
// frames (ruled.go), so that no stored frame has.
//
// # States of a lane
//
//	load checkpoint ─▶ fence (commit the checkpoint with the next epoch: older routers now lose)
//	  ─▶ seal what a rotation left ─▶ route ⟲ ─▶ any error ─▶ load checkpoint …
//
// # Failures
//
// A refused frame or event is kept whole on dead.<topic>, in the same batch. A
// frame a producer already sent (its window in the checkpoint knows) is counted
// and not routed again. The window takes refused frames too, unless their bytes are
// damaged: sent again they do not become a second dead letter, and are not stored beside a
// letter that is retried. A frame of a keyed request that came by another producer is known by
// the parts that the lane was given (given.go). Everything else, a lost race, an unknown answer, a full
// stream, ends the lane's run. The next run begins from the checkpoint, after a
// jittered pause, and finds out there what happened. Where EVENTS lost its end and
// gives its sequences again, the lane goes on after the last message that stayed
// (cut.go). The checkpoint counts that in Era, and lists the last ones in Cuts. A message that is missing where the checkpoint is, and no proof of that,
// stops the lane with ErrRolledBack. So does a SHARDS that lost its end inside a batch,
// or below a rotation (ends.go), and a loss of both streams' ends, which the copy of the
// checkpoint in the registry tells (copies.go).
//
// Where all of NATS was restored from an older copy, nothing of it tells, and positions are given
// again. A sink tells, and takes the shard out of its lane; the lane seals it and goes on in another.
// A front's lane goes back behind the last record that ClickHouse has (forks.go). It holds several
// months: the records of others are settled, and passed over.
//
// # What is not Almanac's
//
// Whatever reaches NATS can publish on the subjects of EVENTS, SHARDS and the fronts. One router of all
// keeps what none of Almanac's parts published as a dead letter, and takes it out: unroutable.go and hidden.go
// do so in EVENTS, foreign.go in the others. A lane whose checkpoint, or whose shard's last frame, is hidden
// by such a message stops until then. A message with the form of a frame, a checkpoint, a record or a letter
// is not told from Almanac's own: the lane stops where it does not fit what the checkpoint knows, and
// verify names it. Only accounts of NATS keep a client from publishing one.
package router
