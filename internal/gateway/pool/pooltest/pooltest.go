package pooltest

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Env is a NATS of a test's own with a registry, and a pool that runs.
type Env struct {
	Servers  *embeddedtest.Servers
	Registry *registry.Registry
	Pool     *pool.Pool
	t        testing.TB
	js       jetstream.JetStream
}

// Limits of the test's streams.
var Limits = schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, Replicas: 1}

// maxWait is how long anything may take on a busy machine.
const maxWait = 2 * time.Minute

// Start declares the topics and runs a pool until the test ends.
func Start(t testing.TB, change func(*pool.Config), topics ...schemas.Topic) *Env {
	t.Helper()
	e := &Env{t: t, Servers: embeddedtest.Start(t, embeddedtest.WithoutClickHouse())}
	nc := e.Servers.NC()
	var err error
	if e.Registry, err = registry.Setup(t.Context(), nc, Limits); err != nil {
		t.Fatal(err)
	}
	if e.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics {
		e.Apply(topic)
	}
	cfg := pool.Config{Anyone: true, NC: nc, Topic: e.Registry.Topic, Erased: e.Registry.ErasedSince}
	if change != nil {
		change(&cfg)
	}
	if e.Pool, err = pool.New(cfg); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := e.Pool.Run(ctx); err != nil {
			t.Logf("the pool ended: %v", err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return e
}

// Apply declares or changes a topic.
func (e *Env) Apply(topic schemas.Topic) schemas.Topic {
	e.t.Helper()
	applied, _, err := e.Registry.Apply(e.t.Context(), topic, false)
	if err != nil {
		e.t.Fatal(err)
	}
	return applied
}

// Events returns what EVENTS has of a topic, in the order of the stream.
func (e *Env) Events(name string) []schemas.Event {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), maxWait)
	defer cancel()
	topic, err := e.Registry.Topic(ctx, name)
	if err != nil {
		e.t.Fatal(err)
	}
	var events []schemas.Event
	info, err := streams.Info(ctx, e.js, schemas.StreamEvents)
	if err != nil {
		e.t.Fatal(err)
	}
	if info.State.Msgs == 0 {
		return nil
	}
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		m, err := streams.DecideAt(ctx, e.js, schemas.StreamEvents, seq)
		if err != nil {
			e.t.Fatal(err)
		}
		if _, _, err := schemas.ParseEventsSubject(m.Subject, &topic); err != nil {
			continue // another topic's
		}
		head, err := schemas.ParseFrame(m.Header)
		if err != nil {
			e.t.Fatal(err)
		}
		var r frame.Reader
		if err := r.Open(m.Data, &topic, head.Schema); err != nil {
			e.t.Fatal(err)
		}
		for i := range r.Rows() {
			events = append(events, r.Event(i))
		}
	}
	return events
}
