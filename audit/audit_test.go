package audit

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// sent is a Publisher that keeps what it was given, or fails.
type sent struct {
	events   []schemas.Event
	deadline bool
	err      error
}

func (s *sent) Publish(ctx context.Context, ev schemas.Event) error {
	_, s.deadline = ctx.Deadline()
	if s.err == nil {
		s.events = append(s.events, ev)
	}
	return s.err
}

func TestChange(t *testing.T) {
	topic := schemas.NewTopicOf(kinds.Audit, "trail")
	to := &sent{}
	w := New(to)
	c := Change{Request: "r", Scope: "s", Type: "role", Resource: "x", Before: map[string]int{"n": 1}, After: json.RawMessage(`{"n": 2}`)}
	if err := errors.Join(w.Before(t.Context(), c), w.After(t.Context(), c, Committed)); err != nil {
		t.Fatal(err)
	}
	if !to.deadline {
		t.Error("a call without a deadline waits forever")
	}
	for i, want := range []map[string]string{
		{"state": "pre_committed", "before": `{"n":1}`, "after": `{"n": 2}`},
		{"state": "committed", "after": `{"n": 2}`},
	} {
		e := to.events[i]
		got := map[string]string{}
		for _, a := range e.Attrs {
			got[a.Key] = a.Text()
		}
		if err := topic.Check(&e, 1, 1); err != nil || e.Type != kinds.TypeChange {
			t.Errorf("%+v: %v", e, err)
		}
		for _, column := range []string{"state", "before", "after"} {
			if got[column] != want[column] {
				t.Errorf("event %d: %s is %q, want %q", i+1, column, got[column], want[column])
			}
		}
	}
}

// ofLogs is a producer of a topic of kind log.
type ofLogs struct{ sent }

func (*ofLogs) Topic() schemas.Topic { return schemas.NewTopic("app") }

// What no trail would show is refused before it is stored.
func TestOtherKind(t *testing.T) {
	to := &ofLogs{}
	w := New(to)
	c := Change{Request: "r", Scope: "s", Type: "role", Resource: "x"}
	for _, err := range []error{w.Before(t.Context(), c), w.After(t.Context(), c, Committed), w.Record(t.Context(), Activity{Request: "r", Scope: "s", Type: "request"})} {
		if !errors.Is(err, ErrKind) {
			t.Errorf("%v", err)
		}
	}
	if len(to.events) != 0 {
		t.Errorf("%d events were stored", len(to.events))
	}
}

// Whatever goes wrong, the caller hears of it: nil alone means stored.
func TestChangeFails(t *testing.T) {
	down, valid := errors.New("down"), Change{Request: "r", Scope: "s", Type: "role", Resource: "x"}
	for name, c := range map[string]struct {
		do   func(*Trail, context.Context) error
		err  error
		want error
	}{
		"not stored":         {func(w *Trail, ctx context.Context) error { return w.Before(ctx, valid) }, down, down},
		"no such state":      {func(w *Trail, ctx context.Context) error { return w.After(ctx, valid, "done") }, nil, ErrState},
		"a body is not JSON": {func(w *Trail, ctx context.Context) error { return w.Before(ctx, Change{After: json.RawMessage("{")}) }, nil, ErrBody},
		"a body has no JSON": {func(w *Trail, ctx context.Context) error { return w.Before(ctx, Change{Before: func() {}}) }, nil, ErrBody},
		"activity not stored": {func(w *Trail, ctx context.Context) error {
			return w.Record(ctx, Activity{Type: "request", Request: "r", Scope: "s"})
		}, down, down},
		"no request": {func(w *Trail, ctx context.Context) error { return w.Before(ctx, Change{Scope: "s"}) }, nil, schemas.ErrValue},
		"no scope": {func(w *Trail, ctx context.Context) error {
			return w.Record(ctx, Activity{Type: "request", Request: "r"})
		}, nil, schemas.ErrValue},
		"no such category": {func(w *Trail, ctx context.Context) error {
			return w.Before(ctx, Change{Request: "r", Scope: "s", Category: "x"})
		}, nil, schemas.ErrValue},
		"a change as activity": {func(w *Trail, ctx context.Context) error {
			return w.Record(ctx, Activity{Type: kinds.TypeChange, Request: "r", Scope: "s"})
		}, nil, schemas.ErrValue},
	} {
		t.Run(name, func(t *testing.T) {
			to := &sent{err: c.err}
			if err := c.do(New(to), t.Context()); !errors.Is(err, c.want) || len(to.events) != 0 {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
