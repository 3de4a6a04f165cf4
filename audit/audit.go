package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Publisher stores an event before it returns nil. A *producer.Producer of a topic of kind
// audit is one.
type Publisher interface {
	Publish(ctx context.Context, ev schemas.Event) error
}

// DefaultWait bounds calls whose context does not have a deadline.
const DefaultWait = 5 * time.Second

// Trail writes audit events. It is safe for concurrent use.
type Trail struct {
	to    Publisher
	wrong error // why nothing can be written
}

// New returns a Trail that writes to a producer. With one of a topic of another kind each call
// is ErrKind.
func New(to Publisher) *Trail {
	t := &Trail{to: to}
	if p, ok := to.(interface{ Topic() schemas.Topic }); ok {
		if topic := p.Topic(); topic.Kind != kinds.Audit {
			t.wrong = fmt.Errorf("audit: topic %q is of kind %s: %w; declare another with `%s`", topic.Name, topic.Kind, ErrKind, kinds.Audit.Declare("NAME"))
		}
	}
	return t
}

// State is how a change ended.
type State string

// How a change ends.
const (
	Committed  State = kinds.StateCommitted
	RolledBack State = kinds.StateRolledBack
)

// Before announces a change. When it returns nil the announcement is stored. Otherwise the
// change must not be made.
func (t *Trail) Before(ctx context.Context, c Change) error {
	return t.change(ctx, c, kinds.StatePreCommitted)
}

// After concludes a change that was announced. It leaves out Change.Before, which the
// announcement has.
func (t *Trail) After(ctx context.Context, c Change, as State) error {
	if as != Committed && as != RolledBack {
		return fmt.Errorf("%w: %q, it must be %s or %s", ErrState, as, Committed, RolledBack)
	}
	c.Before = nil
	return t.change(ctx, c, string(as))
}

func (t *Trail) change(ctx context.Context, c Change, state string) error {
	ev, err := c.Event(state)
	if err != nil {
		return err
	}
	return t.publish(ctx, "change of "+c.Resource, ev)
}

// Record stores an event of a request's activity.
func (t *Trail) Record(ctx context.Context, a Activity) error {
	ev, err := a.Event()
	if err != nil {
		return err
	}
	return t.publish(ctx, a.Type, ev)
}

func (t *Trail) publish(ctx context.Context, what string, ev schemas.Event) error {
	if t.wrong != nil {
		return t.wrong
	}
	if _, has := ctx.Deadline(); !has {
		bounded, cancel := context.WithTimeout(ctx, DefaultWait)
		defer cancel()
		ctx = bounded
	}
	if err := t.to.Publish(ctx, ev); err != nil {
		return fmt.Errorf("audit: %s: %w", what, err)
	}
	return nil
}

// body is JSON text: a json.RawMessage as it stands, anything else as it marshals.
func body(name string, v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case json.RawMessage:
		if len(v) > 0 && !json.Valid(v) {
			return "", fmt.Errorf("%w: %s has %d bytes that are not JSON", ErrBody, name, len(v))
		}
		return string(v), nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("%w: %s: %w", ErrBody, name, err)
	}
	return string(text), nil
}
