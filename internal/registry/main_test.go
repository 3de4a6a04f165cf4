package registry

import (
	"context"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

var testLimits = schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, Replicas: 1}

// open sets up a registry on a server of its own.
func open(t *testing.T) *Registry {
	t.Helper()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	r, err := Setup(t.Context(), srv.NC(), testLimits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// maxWait is how long anything may take on a busy machine.
const maxWait = 2 * time.Minute

// timeout bounds a test that waits.
func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	return ctx
}

// placed is open with an active shard of topic app in a lane.
func placed(t *testing.T, lane int) (*Registry, context.Context, Shard) {
	t.Helper()
	r, ctx, topic := open(t), timeout(t), schemas.NewTopic("app")
	s, err := r.Place(ctx, &topic, november, lane, Point{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	return r, ctx, s
}
