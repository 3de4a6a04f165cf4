package registry

import (
	"context"
	"testing"
	"time"

	"github.com/almanac-events/almanac/embedded/embeddedtest"
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

// timeout bounds a test that waits.
func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}
