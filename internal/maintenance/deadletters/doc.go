// Package deadletters settles dead letters by hand: it sends them again, or drops them.
//
// # Model
//
//	retry   letter ─▶ frames ─▶ EVENTS ─▶ open in the registry ─▶ out of SHARDS ─▶ counted
//	drop    letter ─────────────────────▶ open in the registry ─▶ out of SHARDS ─▶ counted
//
// What a letter holds is opened as a router opens it, with the topic as it is
// declared now: a frame, whatever its headers said, or JSON. Its events keep their
// ids. One without an id gets one derived from the letter's number, and
// one that has no time the letter's. They are put
// into frames of the month and lane where they belong and published. A letter of
// which any event would be refused again stays, and is named with the reason.
//
// # Once
//
// A frame's producer and seq are derived from the letter's number in SHARDS: of 64
// neighbouring letters the producer is the same and the seq is the place among
// them, so that in whatever order letters are sent again, the router's window of 64
// tells each. A retry that is repeated, or that ended between any two steps and was
// begun again, therefore adds one copy. Letters that were left open are taken out
// and counted by the next process.
//
// # What is left out
//
// Events that an erasure means which was entered since the message was accepted do
// not come back: the ledger is asked by the message's sequence in EVENTS, as by
// replay. Of a frame that was refused as too far behind its producer's (stale-seq)
// only the events are sent that ClickHouse has not, by time and id: wait for sinks
// that lag. What is left out counts as dropped. A letter of which nothing is left
// stays, and is named with the reason.
//
// # Who is authoritative
//
// SHARDS says which letters there are, the registry how many are gone and why:
// verify takes retried events out of the dead (they were accepted again) and shows
// dropped ones as discarded.
//
// # Failures
//
// Of two processes that settle the same topic at once each letter is counted by one; the
// other reports it as taken, and goes on. What the caller got wrong wraps
// schemas.ErrRequest. Every call ends with its context.
package deadletters
