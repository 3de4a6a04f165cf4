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

	Type         string            `json:"type"`
	RequestID    string            `json:"request_id"`
	Scope        string            `json:"scope"`
	Service      string            `json:"service,omitempty"`
	Method       string            `json:"method,omitempty"`
	ResourceType string            `json:"resource_type,omitempty"`
	Resource     string            `json:"resource,omitempty"`
	Category     string            `json:"category,omitempty"`
	Actor        string            `json:"user_id,omitempty"`
	Level        string            `json:"level,omitempty"`
	Message      string            `json:"message,omitempty"`
	Before       Body              `json:"before,omitempty"`
	After        Body              `json:"after,omitempty"`
	BeforeBytes  int64             `json:"before_bytes,omitempty"`
	AfterBytes   int64             `json:"after_bytes,omitempty"`
	Attributes   map[string]string `json:"attributes,omitempty"`
	// Events counts the events of the entry, and History has them where it was asked for.
	Events  int     `json:"events"`
	History []Event `json:"history,omitempty"`
}

// fold makes one entry of the events of a change, or of one event: the oldest first, each
// once.
func fold(events []Event) Entry {
	first, final := &events[0], &events[0]
	out := Entry{
		Began: first.Time, Type: first.Type, RequestID: first.RequestID, Scope: first.Scope, Service: first.Service, Method: first.Method,
		ResourceType: first.ResourceType, Resource: first.Resource, Category: first.Category, Actor: first.Actor,
		Level: first.Level, Message: first.Message, Attributes: first.Attributes, Events: len(events),
	}
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
