// Package timer is what a timer is: its states, its transitions and its wire form. It has no I/O,
// no clock and no goroutine.
//
// # Model
//
// The last message on a timer's subject in the stream TIMERS is the timer's record. A record names
// what happened (Op), and with it the timer's State. Each transition is one message, published under
// the expectation that the record before it is still the last. So it is state, history and
// compare-and-set at once.
//
//	        create            due: claim                 answer
//	(none) ───────▶ pending ──────────────▶ firing ─┬────────────────▶ done | failed
//	                  ▲ │ update, delete            ├─ retry: pending, due = now + wait
//	                  │ └──▶ pending' | cancelled   └─ rescheduled: pending, revision + 1, attempt 0
//
// Life is the UUID of a creation. Revision counts from 1 and grows with each update, reschedule and
// retry by hand. Attempt counts the calls of a revision. So life, revision and attempt together name
// one call, and an attempt that is made again after a crash has the same three.
//
// A timer that the front lost is restored from its history: pending as it was, with the
// attempt that was under way to be made again.
//
// The spec (URL, payload, policies) is the body of created, updated and restored records. Others name the
// sequence of the record that holds it (SpecSeq), so a claim costs 300 bytes whatever the payload.
//
// # Who is authoritative
//
// The record is. What a dispatcher remembers is a copy and decides nothing.
//
// # Refusals
//
// A Refusal has a code for programs and a text for people. Nothing was written.
package timer
