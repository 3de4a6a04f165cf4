package cluster

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/integration/faults"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { faults.Main(m) }

// roundsEnv is how often each leader dies and is frozen. Default 1.
const roundsEnv = "ALMANAC_ELECTIONS"

// Leaders die by kill -9 and stay away for a while, or are frozen as long, while events flow. The others elect: nothing is
// lost, nothing twice, and events of all lanes flow while the one is away.
func TestElections(t *testing.T) {
	rounds, away := 1, 2*time.Second
	if n, err := strconv.Atoi(os.Getenv(roundsEnv)); err == nil {
		rounds, away = n, 9*time.Second
	}
	h := faults.Build(t, faults.Plan{Three: true, Routers: 2, Sinks: 2, Writers: []faults.Writer{{Rate: 100}, {Rate: 100}}})
	h.StartWriters()
	ctx := t.Context()
	var times faults.Times
	flows := func(what string, since time.Time) {
		t.Helper()
		took, err := h.Flows(ctx, since)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		times.Add(what, took)
		if took > 10*time.Second {
			t.Logf("%s took %s; what the parts said:\n%s", what, took.Round(time.Millisecond), h.WordsSince(since))
		}
	}
	flows("first events", time.Now())
	for range rounds {
		for _, stream := range []string{schemas.StreamShards, schemas.StreamEvents} {
			p := leader(ctx, t, h, stream)
			began := time.Now()
			p.Kill()
			flows("kill -9 of the leader of "+stream, began) // by the others
			if err := backoff.Sleep(ctx, away-time.Since(began)); err != nil {
				t.Fatal(err)
			}
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			whole(ctx, t, h)
		}
		p := leader(ctx, t, h, schemas.StreamShards)
		began := time.Now()
		p.Stop()
		flows("the leader of SHARDS frozen", began)
		p.Continue()
		whole(ctx, t, h)
	}
	h.Prove(5 * time.Minute)
	t.Logf("until new events of every lane were in ClickHouse:\n%s", &times)
}

// Streams that one server holds get their copies while the servers run: each has all of its stream then, and the server that
// had them alone can go.
func TestReplicate(t *testing.T) {
	h := faults.Build(t, faults.Plan{Three: true, Limits: schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 64 << 20, Replicas: 1},
		Writers: []faults.Writer{{Rate: 200}}})
	h.StartWriters()
	ctx := t.Context()
	if _, err := h.Flows(ctx, time.Now()); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(h.NC)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{schemas.StreamEvents, schemas.StreamShards, schemas.StreamDocs, schemas.StreamTimers, schemas.KVStream, schemas.CopiesStream}
	for _, name := range names {
		embeddedtest.Eventually(t, 5*time.Minute, func() error { return streams.Replicate(ctx, js, name, 3) })
	}
	if err := h.Whole(ctx, names...); err != nil {
		t.Fatal(err)
	}
	p := leader(ctx, t, h, schemas.StreamEvents)
	began := time.Now()
	p.Kill()
	if _, err := h.Flows(ctx, began); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if err := h.Whole(ctx, names...); err != nil { // what checks reads of any of them
		t.Fatal(err)
	}
	h.Prove(5 * time.Minute)
}

func leader(ctx context.Context, t *testing.T, h *faults.Cluster, stream string) *faults.Part {
	t.Helper()
	p, err := h.Leader(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func whole(ctx context.Context, t *testing.T, h *faults.Cluster) {
	t.Helper()
	if err := h.Whole(ctx, schemas.StreamEvents, schemas.StreamShards, schemas.KVStream); err != nil {
		t.Fatal(err)
	}
}
