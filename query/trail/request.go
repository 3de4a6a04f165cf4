package trail

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Limits of a page and of what selects it.
const (
	DefaultLimit = 100
	MaxLimit     = 1000
	// DefaultOpenAfter is how long a change may take before it counts as open.
	DefaultOpenAfter = 10 * time.Minute
	// MaxNames bounds the scopes and the actors of a request.
	MaxNames = 100
)

// Request asks for a page of a trail.
type Request struct {
	Topic string
	// Scopes are whose resources to read. At least one.
	Scopes []string
	// RequestID, Resource, Actors, Service, ResourceType and Method select; empty selects
	// all. See Selections.
	RequestID, Resource           string
	Actors                        []string
	Service, ResourceType, Method string
	// Where is a filter (see query/filter) that holds too.
	Where string
	// From (inclusive) and To (exclusive) bound the events' time; zero is open.
	From, To time.Time
	// Open selects changes that were announced OpenAfter ago or earlier and not concluded.
	Open      bool
	OpenAfter time.Duration
	// History gives each entry its events, the oldest first.
	History bool
	// Limit is 1 to MaxLimit; 0 means DefaultLimit.
	Limit int
	// Cursor of the page before; empty begins.
	Cursor string
}

// Selections are what a request must name one of, for messages and help.
const Selections = "the request, the resource, an actor, service and resource type, or what is open"

// check refuses what no topic could answer, and fills in defaults. What takes the topic's fields to
// see, where refuses.
func (r *Request) check() error {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("%w: %s", schemas.ErrRequest, fmt.Sprintf(format, a...))
	}
	if err := schemas.ValidateTopicName(r.Topic); err != nil {
		return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	if r.Limit == 0 {
		r.Limit = DefaultLimit
	}
	if r.OpenAfter == 0 {
		r.OpenAfter = DefaultOpenAfter
	}
	switch {
	case r.Limit < 1 || r.Limit > MaxLimit:
		return bad("limit is %d, it must be 1 to %d", r.Limit, MaxLimit)
	case r.OpenAfter < 0:
		return bad("a change cannot be open after %s", r.OpenAfter)
	case len(r.Scopes) == 0 || slices.Contains(r.Scopes, ""):
		return bad("a trail is read within a scope: name one or more, none of them empty")
	case len(r.Scopes) > MaxNames || len(r.Actors) > MaxNames:
		return bad("%d scopes and %d actors, the limit is %d of each", len(r.Scopes), len(r.Actors), MaxNames)
	case r.RequestID == "" && r.Resource == "" && len(r.Actors) == 0 && (r.Service == "" || r.ResourceType == "") && !r.Open:
		return bad("nothing selects the events; name one of these: %s", Selections)
	}
	for _, t := range []time.Time{r.From, r.To} {
		if !t.IsZero() {
			if _, err := schemas.UnixNs(t); err != nil {
				return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
			}
		}
	}
	return nil
}

// where is the filter of the request, in one spelling, as of a moment.
//
// No index covers attributes: such a filter reads the whole map of every event that the other
// conditions leave. A resource, an actor or a request that streams may have any number of events.
// Service and method, two columns of few values that are read before the map, leave the calls of
// one kind, within which an attribute's name has one meaning. The rule is the same beside every
// selection, so that a filter does not depend on what else a request names.
func (r *Request) where(t *schemas.Topic, now time.Time) (string, error) {
	e, err := filter.ParseAt(r.Where, t, now)
	if err != nil {
		return "", fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	if e.NamesAttributes() && (r.Service == "" || r.Method == "") {
		return "", fmt.Errorf("%w: a filter by attributes needs service and method beside it, since no index covers attributes", schemas.ErrRequest)
	}
	return e.String(), nil
}

// filter is the condition of the events to look at, where being the request's filter.
func (r *Request) filter(where string) string {
	conds := []string{in(kinds.ColScope, r.Scopes)}
	for _, c := range []struct{ column, value string }{
		{kinds.ColRequestID, r.RequestID}, {kinds.ColResource, r.Resource}, {schemas.ColService, r.Service},
		{kinds.ColResourceType, r.ResourceType}, {kinds.ColMethod, r.Method},
	} {
		if c.value != "" {
			conds = append(conds, c.column+" = "+filter.Quote(c.value))
		}
	}
	if len(r.Actors) > 0 {
		conds = append(conds, in(schemas.ColUserID, r.Actors))
	}
	if r.Open {
		conds = append(conds, schemas.ColType+" = '"+kinds.TypeChange+"'", kinds.ColState+" = '"+kinds.StatePreCommitted+"'")
	}
	if where != "" {
		conds = append(conds, "("+where+")")
	}
	return strings.Join(conds, " AND ")
}

// in is a condition of a column and its values.
func in(column string, values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = filter.Quote(v)
	}
	return column + " IN (" + strings.Join(quoted, ", ") + ")"
}

// fits reports whether an event is one that the request selects, but for its filter.
func (r *Request) fits(e *Event) bool {
	is := func(want, value string) bool { return want == "" || want == value }
	return slices.Contains(r.Scopes, e.Scope) &&
		is(r.RequestID, e.RequestID) && is(r.Resource, e.Resource) && is(r.Service, e.Service) &&
		is(r.ResourceType, e.ResourceType) && is(r.Method, e.Method) &&
		(len(r.Actors) == 0 || slices.Contains(r.Actors, e.Actor)) &&
		(!r.Open || e.Type == kinds.TypeChange && e.State == kinds.StatePreCommitted) &&
		(r.From.IsZero() || !e.Time.Before(r.From)) && (r.To.IsZero() || e.Time.Before(r.To))
}
