// Package fronts writes records of keys. It stands on one stream, DOCS or TIMERS, in
// which each subject is one key and its last message the key's record.
//
// # Model
//
// A write is one message. It is the key's new state, the event of its change, and a
// compare-and-set: Nats-Expected-Last-Subject-Sequence names the record that the writer
// read. Acknowledged means accepted: it is on disk, and the router moves it on.
//
//	Last ─▶ evaluate (the caller) ─▶ Put, expecting what was read ─▶ acknowledged
//	                                │ refused: ErrConflict, read again
//	                                └ no answer: read back, by the call's own nonce
//
// # Group commit
//
// Writes that wait go together (group.go). Up to 16 go one by one, pipelined. More go as
// one atomic batch of at most 500, which costs the server 4 syncs whatever its size. Two
// writes of a key never share a batch. A refused batch stored nothing, so its writes are
// then sent one by one, and each is refused for its own sake alone.
//
// # Who is authoritative
//
// The stream is: the key's newest record, whatever another program published above it (newest.go). A Writer keeps one sequence of it, that it once had. Its reads are the leader's word.
//
// # Room
//
// A part of the stream is kept from new keys (Reserve), and half of that from changes, for what empties it or is what it is
// for: Purpose says which a write is. A writer looks at the stream each second, and holds what it has on its way below a
// share of what is free, since no writer sees what the others have on theirs. A timer owes its claim and its end, and new
// ones leave that room.
//
// # Failures
//
// An expectation that does not hold is ErrConflict: nothing was written. A stream without room for the write's
// purpose is ErrFull, one that NATS cannot store though it has room ErrStore. An answer that did not come is found out: the first message of the key after
// the one expected is ours by its nonce, or another's, or is not there, and then the
// same write is sent again. It can be stored once at most, because its expectation holds once. What
// cannot be found out within Config.Timeout is ErrUnknown: read the key again.
//
// Where the stream has replicas, a refusal alone does not tell. A server that led the stream
// until it was paused may give it, while the one that leads now stores the write; and a write that
// is under way refuses its own repetition. So the record is looked for first.
//
// The read back holds as long as the record stays in the stream. The cleaner takes out
// only what was stored longer ago than any write lasts. A stub or refresh of what the stream
// had before the write was sent is another's: the write was refused. One of a later record
// may be of our own, and is ErrUnknown.
package fronts
