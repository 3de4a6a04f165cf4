package registry

import (
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// While a backup is being restored into a server, no part opens a registry there, and none makes one: neither before the bucket is there, nor after.
func TestRestoring(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	ctx, nc := t.Context(), srv.NC()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	const of = "20260102T030405.000000000Z.backup"
	refused := func(when string) {
		t.Helper()
		for way, try := range map[string]func() (*Registry, error){
			"open":  func() (*Registry, error) { return Open(ctx, nc) },
			"setup": func() (*Registry, error) { return Setup(ctx, nc, testLimits) },
			"make":  func() (*Registry, error) { return CreateBucket(ctx, nc, testLimits) },
		} {
			if _, err := try(); !errors.Is(err, schemas.ErrRestoring) || !strings.Contains(err.Error(), of) {
				t.Errorf("%s, %s: %v", when, way, err)
			}
		}
	}
	under := func(when string, bucket bool) {
		t.Helper()
		if got, there, err := Restoring(ctx, js); err != nil || got != of || there != bucket {
			t.Errorf("%s: of %q, bucket %t, %v", when, got, there, err)
		}
	}
	for range 2 { // one that is killed says so again
		if err := BeginRestore(ctx, js, of, 1); err != nil {
			t.Fatal(err)
		}
	}
	refused("begun")
	under("begun", false)
	for _, stream := range []string{schemas.StreamEvents, schemas.KVStream} {
		if _, err := js.Stream(ctx, stream); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("a part made %s: %v", stream, err)
		}
	}
	r, err := SetupRestored(ctx, nc, testLimits)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(ctx, schemas.KVStream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config // as it is restored
	schemas.MarkRestoring(cfg.Metadata, of)
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	refused("with its bucket")
	under("with its bucket", true)
	if _, err := OpenRestored(ctx, nc); err != nil {
		t.Errorf("the restore itself: %v", err)
	}
	if err := js.DeleteStream(ctx, schemas.StreamRestoring); err != nil { // killed there
		t.Fatal(err)
	}
	refused("between its last two steps")
	under("between its last two steps", true)
	for range 2 {
		if err := EndRestore(ctx, r.JetStream()); err != nil {
			t.Fatal(err)
		}
	}
	if got, _, err := Restoring(ctx, js); err != nil || got != "" {
		t.Errorf("ended: of %q, %v", got, err)
	}
	if _, err := Setup(ctx, nc, testLimits); err != nil {
		t.Error(err)
	}
	if s, err = js.Stream(ctx, schemas.KVStream); err != nil {
		t.Fatal(err)
	}
	if number, ok := schemas.FormatOf(s.CachedInfo().Config.Metadata); !ok || number == "" {
		t.Errorf("the format's number went with the mark: %v", s.CachedInfo().Config.Metadata)
	}
}
