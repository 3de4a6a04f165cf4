package streams_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A store below the streams' defaults is refused with the options that help.
func TestStoreTooSmall(t *testing.T) {
	t.Parallel()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 64 << 20, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	_, js := embeddedtest.Dial(t, "", nats.InProcessServer(srv))
	err = streams.Ensure(t.Context(), js, schemas.EventsStream(schemas.DefaultStreamLimits), false)
	if !errors.Is(err, streams.ErrStoreTooSmall) {
		t.Fatal(err)
	}
	for _, want := range []string{"EVENTS", "8192 MiB", "--events-bytes", "--shards-bytes", "max_file_store"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	// A stream that is there gets the subjects that came since.
	old := schemas.EventsStream(schemas.StreamLimitsFor(64 << 20))
	old.Subjects = []string{schemas.SubjectsLanes}
	if _, err := js.CreateStream(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	fits := schemas.EventsStream(schemas.StreamLimitsFor(64 << 20))
	if err := streams.Ensure(t.Context(), js, fits, false); err != nil {
		t.Error(err)
	}
	if _, err := js.Publish(t.Context(), "events.app.2026-11", []byte("{}")); err != nil {
		t.Errorf("without a lane: %v", err)
	}
}

// A stream is declared also where NATS does not answer at first, as a cluster without a leader does
// not: the caller's context may have no end.
func TestEnsureAsksAgain(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"INFO", "CREATE"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
			var lost atomic.Bool
			url := embeddedtest.LinkProxy(t, srv.NATSURL, func(r embeddedtest.Request) embeddedtest.Fate {
				return embeddedtest.Fate{Drop: strings.HasPrefix(r.Subject, "$JS.API.STREAM."+what+".") && !lost.Swap(true)}
			}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} })
			_, js := embeddedtest.Dial(t, url)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := streams.Ensure(ctx, js, schemas.EventsStream(schemas.StreamLimitsFor(64<<20)), false); err != nil || !lost.Load() {
				t.Errorf("%v, a request was lost: %v", err, lost.Load())
			}
		})
	}
}

// TestBoundOfAStreamThatExists holds that a bound which the operator said is that of a stream that exists, at once and
// without loss, that one which was not said is left alone, and that a store too small says so.
func TestBoundOfAStreamThatExists(t *testing.T) {
	t.Parallel()
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 64 << 20, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	t.Cleanup(func() { srv.Shutdown(); srv.WaitForShutdown() })
	_, js := embeddedtest.Dial(t, "", nats.InProcessServer(srv))
	limits := schemas.StreamLimits{Replicas: 1}
	expect := func(what string, bytes int64) {
		t.Helper()
		info, err := streams.Info(t.Context(), js, schemas.StreamTimers)
		if err != nil || info.Config.MaxBytes != bytes {
			t.Errorf("%s: %+v, %v, expected %d", what, info, err, bytes)
		}
	}
	ensure := func(bytes int64, said bool) error {
		limits.TimersBytes = bytes
		return streams.Ensure(t.Context(), js, schemas.TimersStream(limits), said)
	}
	for _, c := range []struct {
		what        string
		bytes, want int64
		said        bool
	}{
		{"created", 8 << 20, 8 << 20, false},
		{"by the free space of another day", 16 << 20, 8 << 20, false},
		{"said", 16 << 20, 16 << 20, true},
		{"said, and smaller", 4 << 20, 4 << 20, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			if err := ensure(c.bytes, c.said); err != nil {
				t.Errorf("%s: %v", c.what, err)
			}
			expect(c.what, c.want)
		})
	}
	if err := ensure(1<<30, true); !errors.Is(err, streams.ErrStoreTooSmall) || !strings.Contains(err.Error(), "almanac streams apply") {
		t.Errorf("more than the server may store: %v", err)
	}
	publish := func() error {
		_, err := js.Publish(t.Context(), schemas.TimerSubject("timers", 0, "g", 0, "a"), make([]byte, 600<<10))
		return err
	}
	for range 2 {
		if err := publish(); err != nil {
			t.Fatal(err)
		}
	}
	if err := streams.Bound(t.Context(), js, schemas.StreamTimers, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := publish(); err == nil {
		t.Error("a stream above its bound takes more")
	}
	if err := streams.Bound(t.Context(), js, schemas.StreamTimers, 8<<20); err != nil {
		t.Fatal(err)
	}
	if err := publish(); err != nil {
		t.Errorf("with more room: %v", err)
	}
	info, err := streams.Info(t.Context(), js, schemas.StreamTimers)
	if err != nil || info.State.Msgs != 3 {
		t.Errorf("%+v, %v: messages were lost", info, err)
	}
}
