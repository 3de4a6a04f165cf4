package pool_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// store sends one event and returns the version of the topic that it met.
func store(t *testing.T, p *pool.Pool, topic string) int {
	r := p.Begin(pool.InputLines)
	defer r.End()
	to, err := r.To(t.Context(), topic)
	if err != nil {
		t.Error(err)
		return 0
	}
	if err := to.Add(schemas.Event{Message: "m", Attrs: []schemas.Attr{schemas.Float64("duration_ms", 1.5)}}); err != nil {
		t.Error(err)
	}
	if _, err := r.Store(t.Context()); err != nil {
		t.Error(err)
	}
	return to.Topic().Version
}

// TestTopicChanges promotes a field under load: no request fails, and the producer is
// another one soon.
func TestTopicChanges(t *testing.T) {
	t.Parallel()
	e := pooltest.Start(t, nil, schemas.NewTopic("app"))
	if v := store(t, e.Pool, "app"); v != 1 {
		t.Fatalf("version %d, want 1", v)
	}
	changed := schemas.NewTopic("app")
	changed.Fields = []schemas.Field{{Name: "duration_ms", Type: "float64"}}
	e.Apply(changed)
	var senders sync.WaitGroup
	var sent [4]int
	deadline := time.Now().Add(2 * time.Minute)
	for i := range sent {
		senders.Go(func() {
			for v := 0; v != 2 && !t.Failed() && time.Now().Before(deadline); sent[i]++ {
				v = store(t, e.Pool, "app")
			}
		})
	}
	senders.Wait()
	total := 1
	for _, n := range sent {
		total += n
	}
	if v := store(t, e.Pool, "app"); v != 2 {
		t.Fatalf("version %d, want 2", v)
	}
	if got := len(e.Events("app")); got != total+1 {
		t.Fatalf("%d events are stored, %d were answered", got, total+1)
	}
}

func TestUnknownTopic(t *testing.T) {
	t.Parallel()
	e := pooltest.Start(t, nil)
	r := e.Pool.Begin(pool.InputLines)
	defer r.End()
	if _, err := r.To(t.Context(), "nope"); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Fatal(err)
	}
	if _, err := r.To(t.Context(), "No"); !errors.Is(err, schemas.ErrTopicName) {
		t.Fatal(err)
	}
	e.Apply(schemas.NewTopic("nope"))
	embeddedtest.Eventually(t, time.Minute, func() error {
		r := e.Pool.Begin(pool.InputLines)
		defer r.End()
		_, err := r.To(t.Context(), "nope")
		return err
	})
}

// A topic that hashes cannot be written to by a gateway without the key: the answer says what is missing and where it is set,
// and not to send again.
func TestTopicThatHashesWithoutTheKey(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("auth")
	topic.PII = []schemas.Private{{Field: "user_id", Rule: schemas.PrivacyHash}}
	e := pooltest.Start(t, nil, topic)
	r := e.Pool.Begin(pool.InputLines)
	defer r.End()
	_, err := r.To(t.Context(), "auth")
	if !errors.Is(err, pool.ErrNoKey) || pool.Status(err) != http.StatusConflict || pool.RetryAfter(err) != 0 || pool.Code(err) != "no_privacy_key" {
		t.Fatalf("%d %s: %v", pool.Status(err), pool.Code(err), err)
	}
	for _, words := range []string{"ALMANAC_PII_KEY", "ALMANAC_PII_KEY_FILE", "topic auth"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%v: want %s in it", err, words)
		}
	}
}
