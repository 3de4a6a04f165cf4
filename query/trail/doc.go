// Package trail reads topics of kind audit: changes with how they ended, what is still open,
// and the activity of requests. It changes nothing.
//
// # Model
//
// A page has entries, the newest first. The events of type change that have scope, request and
// resource in common are one entry, a change. Every other event is an entry of its own. A
// copy of an event (schemas.Topic.Once) is left out.
//
//	a page of events ─▶ copies out ─▶ the whole history of each change among them ─▶ entries
//
// A change stands where the earliest of its events stands that fits the request. So an event
// that concludes it later does not move it, and a page that goes on misses none. Its history
// is whole, also the part that the request does not select or that lies outside its times.
//
// The final state of a change is that of its latest event that is not pre_committed. A change
// without one is open: its process died, or never learned that the announcement was stored.
//
// # Who is authoritative
//
// Events are read by package query: those that are stored, and those that were accepted and
// are not stored yet. What was erased is in neither.
//
// # Failures
//
// Scope is always a condition, and a request must select by one of Selections. Anything else
// wraps schemas.ErrRequest. A read that had to leave accepted events out is ErrIncomplete, and
// no page. A page ends after maxReads reads of events, then it may be short and has a cursor.
package trail
