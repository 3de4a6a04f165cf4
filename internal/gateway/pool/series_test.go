package pool_test

import (
	"errors"
	"maps"
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

// Of a series that is refused the labels are read once for all its points that come one after the other.
func TestSeriesThatIsRefusedIsReadOnce(t *testing.T) {
	t.Parallel()
	e := pooltest.Start(t, nil, schemas.NewTopicOf(kinds.Metric, "cpu"))
	r := e.Pool.Begin(pool.InputRemoteWrite)
	defer r.End()
	to, err := r.To(t.Context(), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	bad := errors.New("no metric has this name")
	read := map[string]int{}
	ask := func(said, value string, refusal error) {
		t.Helper()
		s, err := to.Series("test", []byte(said), value, func() (schemas.Event, error) {
			read[said+value]++
			return schemas.Event{Type: "up"}, refusal
		})
		if !errors.Is(err, refusal) || (s == nil) != (refusal != nil) {
			t.Errorf("%s %s: %v, %v, want %v", said, value, s, err, refusal)
		}
	}
	for range 3 {
		ask("bad", "", bad)
	}
	ask("bad", "NaN", bad)
	ask("bad", "NaN", bad)
	for range 2 {
		ask("good", "", nil)
	}
	ask("bad", "", bad) // in another place of the request
	if want := map[string]int{"bad": 2, "badNaN": 1, "good": 1}; !maps.Equal(read, want) {
		t.Errorf("labels were read %v times, want %v", read, want)
	}
}
