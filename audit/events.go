package audit

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Change is a change of one resource by one request.
type Change struct {
	// Request is the id of the request. Required.
	Request string
	// Scope is whose resource it is: a project, an account, a tenant. Required.
	Scope string
	// Service and Method name what was called, Type and Resource what changes.
	Service, Method, Type, Resource string
	// Category is one of kinds.Categories, or empty.
	Category string
	// Actor is who asked for it; it is the event's user, which an erasure names.
	Actor string
	// Before and After are the resource: a json.RawMessage, or a value that marshals to JSON.
	Before, After any
	// Time is when it is recorded. The zero time means now, by the producer's clock. It is a
	// part of the event's identity, so a call that is repeated should keep it.
	Time time.Time
	// Labels are more attributes, such as the id of a transaction.
	Labels []schemas.Attr
}

// Event returns the change in a state, one of kinds.StatePreCommitted, StateCommitted and StateRolledBack, as an event
// of a topic of kind audit. Trail.Before and After store it. The error is ErrBody, or schemas.ErrValue for one that no such topic takes.
func (c Change) Event(state string) (schemas.Event, error) {
	before, err := body("before", c.Before)
	if err != nil {
		return schemas.Event{}, err
	}
	after, err := body("after", c.After)
	if err != nil {
		return schemas.Event{}, err
	}
	attrs := append(named(c.Request, c.Scope, c.Method, c.Type, c.Resource, c.Category), schemas.String(kinds.ColState, state))
	if before != "" {
		attrs = append(attrs, schemas.String(kinds.ColBefore, before))
	}
	if after != "" {
		attrs = append(attrs, schemas.String(kinds.ColAfter, after))
	}
	return checked(schemas.Event{Time: c.Time, Type: kinds.TypeChange, Service: c.Service, UserID: c.Actor, Attrs: append(attrs, c.Labels...)})
}

// Activity is an event of a request that is not a change.
type Activity struct {
	// Type says which it is, such as request, response, message or exit. Required, and not
	// kinds.TypeChange.
	Type string
	// Request, Scope and the others are those of Change. Request and Scope are required.
	Request, Scope                          string
	Service, Method, ResourceType, Resource string
	Category, Actor                         string
	// Message is the text for people.
	Message string
	// Time is when it happened; the zero time means now.
	Time   time.Time
	Labels []schemas.Attr
}

// Event returns the activity as an event of a topic of kind audit. The error is schemas.ErrValue, for one that no
// such topic takes, and for a change.
func (a Activity) Event() (schemas.Event, error) {
	if a.Type == kinds.TypeChange {
		return schemas.Event{}, fmt.Errorf("audit: %w: the type of an activity is %q: changes are written by Before and After", schemas.ErrValue, a.Type)
	}
	attrs := named(a.Request, a.Scope, a.Method, a.ResourceType, a.Resource, a.Category)
	return checked(schemas.Event{Time: a.Time, Type: a.Type, Service: a.Service, UserID: a.Actor, Message: a.Message, Attrs: append(attrs, a.Labels...)})
}

// checked is an event that keeps to the rules of its kind.
func checked(e schemas.Event) (schemas.Event, error) {
	if err := schemas.CheckKind(kinds.Audit, &e); err != nil {
		return schemas.Event{}, fmt.Errorf("audit: %w", err)
	}
	return e, nil
}

// named are the attributes that changes and activity share.
func named(request, scope, method, resourceType, resource, category string) []schemas.Attr {
	attrs := []schemas.Attr{schemas.String(kinds.ColRequestID, request), schemas.String(kinds.ColScope, scope)}
	for _, a := range []schemas.Attr{
		schemas.String(kinds.ColMethod, method), schemas.String(kinds.ColResourceType, resourceType),
		schemas.String(kinds.ColResource, resource), schemas.String(kinds.ColCategory, category),
	} {
		if a.Text() != "" {
			attrs = append(attrs, a)
		}
	}
	return attrs
}
