package trail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Body is JSON text. In JSON it stands as what it is.
type Body string

// MarshalJSON gives the body as it is; text that is not JSON as a string.
func (b Body) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(b)) {
		return []byte(b), nil
	}
	return json.Marshal(string(b))
}

// UnmarshalJSON takes the text of any value, without the space between its tokens.
func (b *Body) UnmarshalJSON(text []byte) error {
	var out bytes.Buffer
	err := json.Compact(&out, text)
	*b = Body(out.String())
	return err
}

// Event is one stored event.
type Event struct {
	Time   time.Time  `json:"ts"`
	ID     schemas.ID `json:"-"`
	IDText string     `json:"id"`
	Type   string     `json:"type"`
	State  string     `json:"state,omitempty"`
	Facts
}

// Facts are what an event says, and an entry of its events.
type Facts struct {
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
}

// parseEvent reads an event from a row of a query.
func parseEvent(text json.RawMessage) (Event, error) {
	var row struct {
		Event
		Before string `json:"before"` // a text there
		After  string `json:"after"`
	}
	err := json.Unmarshal(text, &row)
	e := row.Event
	if err == nil {
		e.ID, err = schemas.ParseID(e.IDText)
	}
	e.Before, e.After = Body(row.Before), Body(row.After)
	return e, err
}

// compare orders events by time and id, as queries do.
func (e *Event) compare(other *Event) int {
	return cmp.Or(e.Time.Compare(other.Time), e.ID.Compare(other.ID))
}

// isChange reports whether the event belongs to a change.
func (e *Event) isChange() bool { return e.Type == kinds.TypeChange }

// change names a change.
type change struct{ scope, request, resource string }

func (e *Event) change() change { return change{e.Scope, e.RequestID, e.Resource} }

// identity is what two copies of an event have in common, beside its time.
type identity struct {
	at      int64
	request string
	// scope is not among the columns that make events the same one. Two scopes see one
	// event each all the same.
	scope, resource, kind, state string
}

func (e *Event) identity() identity {
	return identity{e.Time.UnixNano(), e.RequestID, e.Scope, e.Resource, e.Type, e.State}
}

// once sorts events, the oldest first, and drops copies: the one with the least id stays.
func once(events []Event) []Event {
	slices.SortFunc(events, func(a, b Event) int { return a.compare(&b) })
	seen := map[identity]bool{}
	return slices.DeleteFunc(events, func(e Event) bool {
		again := seen[e.identity()]
		seen[e.identity()] = true
		return again
	})
}
