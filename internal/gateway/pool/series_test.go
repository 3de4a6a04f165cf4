package pool_test

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// The series that a pool remembers are of the topic as it is: a rule that comes while points flow holds for all that are
// sent after the pool has it, and requests under way go on.
func TestSeriesOfATopicThatChanges(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopicOf(kinds.Metric, "cpu")
	e := pooltest.Start(t, nil, topic)
	read := 0
	point := func(r *pool.Request) *pool.Target {
		to, err := r.To(t.Context(), "cpu")
		if err != nil {
			t.Fatal(err)
		}
		s, err := to.Series("test", []byte("the same"), "", func() (schemas.Event, error) {
			read++
			return schemas.Event{Type: "up", Attrs: []schemas.Attr{schemas.String("host", "secret")}}, nil
		})
		if err != nil || s == nil {
			t.Fatal(s, err)
		}
		if err := to.AddPoint(s, producer.Point{Time: time.Now().UnixNano(), Value: 1}); err != nil {
			t.Fatal(err)
		}
		return to
	}
	store := func(r *pool.Request) {
		if _, err := r.Store(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.End()
	}
	for range 2 {
		r := e.Pool.Begin(pool.InputRemoteWrite)
		point(r)
		store(r)
	}
	if read != 1 {
		t.Errorf("labels of a series that came twice were read %d times", read)
	}
	before := e.Pool.Begin(pool.InputRemoteWrite)
	point(before)
	topic.PII = []schemas.Private{{Field: "host", Rule: schemas.PrivacyDrop}}
	e.Apply(topic)
	embeddedtest.Eventually(t, 2*time.Minute, func() error {
		r := e.Pool.Begin(pool.InputRemoteWrite)
		defer store(r)
		if len(point(r).Topic().PII) == 0 {
			return errors.New("the pool has the topic as it was")
		}
		return nil
	})
	point(before) // of the topic as it was when the request began
	store(before)
	n := len(e.Events("cpu"))
	last := e.Pool.Begin(pool.InputRemoteWrite)
	point(last)
	store(last)
	events := e.Events("cpu")
	if len(events) != n+1 {
		t.Fatalf("%d events after %d", len(events), n)
	}
	secret := 0
	for i := range events {
		for _, a := range events[i].Attrs {
			if a.Text() == "secret" {
				secret++
			}
		}
	}
	for _, a := range events[n].Attrs {
		if a.Text() == "secret" {
			t.Errorf("the rule does not hold for %+v", events[n])
		}
	}
	if secret < 4 {
		t.Errorf("%d events of before the rule have the label, want 4 at least", secret)
	}
}
