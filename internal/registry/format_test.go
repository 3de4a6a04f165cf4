package registry

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// A registry of another format is neither opened nor set up, whether it is older or newer; one without a number,
// made by hand, is of this one.
func TestFormat(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	r, err := Setup(t.Context(), srv.NC(), testLimits)
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.js.Stream(t.Context(), schemas.KVStream)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	if number, ok := schemas.FormatOf(cfg.Metadata); !ok || number != strconv.Itoa(schemas.Format) {
		t.Errorf("made with format %q", number)
	}
	number := func(metadata map[string]string) {
		t.Helper()
		cfg.Metadata = metadata
		if _, err := r.js.UpdateStream(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
	}
	ways := map[string]func() error{
		"open":  func() error { _, err := Open(t.Context(), srv.NC()); return err },
		"setup": func() error { _, err := Setup(t.Context(), srv.NC(), testLimits); return err },
		"make":  func() error { _, err := CreateBucket(t.Context(), srv.NC(), testLimits); return err },
	}
	for _, other := range []string{strconv.Itoa(schemas.Format - 1), strconv.Itoa(schemas.Format + 1), "", "x"} {
		metadata := schemas.FormatMetadata()
		for key := range metadata {
			metadata[key] = other
		}
		number(metadata)
		// What is missing is not made beside what another Almanac keeps.
		if err := r.js.DeleteStream(t.Context(), schemas.StreamTimers); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Fatal(err)
		}
		for way, try := range ways {
			if err := try(); !errors.Is(err, schemas.ErrFormat) || !strings.Contains(err.Error(), strconv.Quote(other)) || !strings.Contains(err.Error(), "format "+strconv.Itoa(schemas.Format)) {
				t.Errorf("%s of format %q: %v", way, other, err)
			}
		}
		if _, err := r.js.Stream(t.Context(), schemas.StreamTimers); !errors.Is(err, jetstream.ErrStreamNotFound) {
			t.Errorf("format %q: setup made %s: %v", other, schemas.StreamTimers, err)
		}
	}
	number(nil)
	for _, way := range []string{"setup", "open", "make"} {
		if err := ways[way](); err != nil {
			t.Errorf("%s without a number: %v", way, err)
		}
	}
}
