package trail

import (
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// Entry is a change, or one event of a request's activity.
type Entry struct {
	// Began is the time of the first event, and Ended that of the one that concluded a
	// change; nil while it is open.
	Began time.Time  `json:"began"`
	Ended *time.Time `json:"ended,omitempty"`
	// State is how a change ended, or pre_committed while it is open.
	State string `json:"state,omitempty"`
	// Disputed: the change was both committed and rolled back. State is the later one.
	Disputed bool `json:"disputed,omitempty"`

	Type string `json:"type"`
	Facts
	// Events counts the events of the entry, and History has them where it was asked for.
	Events  int     `json:"events"`
	History []Event `json:"history,omitempty"`
}

// fold makes one entry of the events of a change, or of one event: the oldest first, each
// once.
func fold(events []Event) Entry {
	first, final := &events[0], &events[0]
	out := Entry{Began: first.Time, Type: first.Type, Facts: first.Facts, Events: len(events)}
	out.Before, out.After, out.BeforeBytes, out.AfterBytes = "", "", 0, 0 // those of all events, below
	states := map[string]bool{}
	for i := range events {
		e := &events[i]
		states[e.State] = true
		if e.State != kinds.StatePreCommitted || final.State == kinds.StatePreCommitted {
			final = e
		}
		if out.Before == "" {
			out.Before, out.BeforeBytes = e.Before, e.BeforeBytes
		}
		if e.After != "" && (out.After == "" || final == e) {
			out.After, out.AfterBytes = e.After, e.AfterBytes
		}
	}
	out.State, out.Disputed = final.State, states[kinds.StateCommitted] && states[kinds.StateRolledBack]
	if !first.isChange() {
		return out
	}
	if final.State != kinds.StatePreCommitted {
		ended := final.Time
		out.Ended = &ended
	}
	return out
}

// open reports whether a change was announced and not concluded, the last time at or before
// a moment.
func open(events []Event, until time.Time) bool {
	return !slices.ContainsFunc(events, func(e Event) bool { return e.State != kinds.StatePreCommitted || e.Time.After(until) })
}
