package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// environment is the test's servers as an Environment.
func environment(t testing.TB, cfg Config) *Environment {
	return &Environment{
		NATS: cfg.NATS, NATSURL: cfg.NATSURL, Registry: cfg.Registry, DB: cfg.DB, ClickHouse: cfg.clickhouse, EnginePID: cfg.EnginePID,
		Dir: t.TempDir(), Stop: func() {}, Close: func() {},
	}
}

// Two figures that need no process, on real servers: shards are made as many as
// were asked for, the filled table holds what the rate is measured over, and the
// sizes come from what was stored.
func TestFigures(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	s := &Suite{Size: Quick, Progress: func(string, string, int, int) {}, Environment: func(context.Context) (*Environment, error) { return environment(t, cfg), nil }}
	many := s.config(environment(t, cfg), Config{prefix: "many_"})
	topics, err := declare(t.Context(), &many)
	if err != nil {
		t.Fatal(err)
	}
	if err := makeShards(t.Context(), &many, topics[0], 12, 3); err != nil {
		t.Fatal(err)
	}
	if err := fill(t.Context(), &many, &topics[0], 30_000); err != nil {
		t.Fatal(err)
	}
	if n, err := storedRows(t.Context(), &many, topics); err != nil || n != 30_012 {
		t.Errorf("%d rows are stored, want 30,012: %v", n, err)
	}
	figures, err := s.Measure(t.Context(), Measure{"disk", disk})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		t.Logf("%+v", f)
		if f.Value <= 0 || f.Raw["ndjson_zstd_bytes_per_event"] < 30 {
			t.Errorf("%s is %v of %v bytes", f.Name, f.Value, f.Raw)
		}
	}
}

// Processes are watched: what they say, the most memory they had, how they end.
func TestProcess(t *testing.T) {
	t.Parallel()
	s := &Suite{Binary: "/bin/sh"}
	p, err := s.startProcess(t.Context(), map[string]string{"ALMANAC_NATS": "here"}, "-c", `echo '{"message":"ready"}'; echo "$ALMANAC_NATS" "$ALMANAC_DATA"; exec sleep 60`)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Eventually(t, time.Minute, func() error {
		if p.peakBytes() == 0 || !p.said.contains("here") {
			return fmt.Errorf("its memory was not read, or what it said: %q", p.said.tail())
		}
		return nil
	})
	p.stop()
	p, err = s.startProcess(t.Context(), nil, "-c", "echo no such thing >&2; exit 1")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ready(t.Context()); err == nil {
		t.Error("a process that failed got ready")
	}
	if err := p.wait(t.Context()); err == nil {
		t.Error("a process that failed ended well")
	}
}
