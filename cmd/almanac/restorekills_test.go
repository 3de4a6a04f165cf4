package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/backup"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// A restore into servers is killed after each of its steps, and run again until it ends. As long as it has not, no part starts there, no registry is
// opened or made, and nothing is sent. Then the parts that waited start by themselves, and everything is there once.
func TestRestoreKilledAtEachStep(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	source := b.up()
	b.ok(lines(300), "send", "app")
	b.inTheEnd(300)
	dest := filepath.Join(b.dir, "backups")
	b.ok("", "backup", dest)
	if code := source.stop(syscall.SIGTERM); code != exitOK {
		t.Errorf("up ended with %d", code)
	}
	srv := embeddedtest.Start(t)
	files := srv.Engine.BackupsDir()
	if err := os.MkdirAll(files, 0o700); err != nil {
		t.Fatal(err)
	}
	servers := []string{"--nats", srv.NATSURL, "--clickhouse", srv.HTTPDSN()}
	limits := []string{"--events-bytes", "64MiB", "--shards-bytes", "64MiB", "--docs-bytes", "64MiB", "--timers-bytes", "64MiB"}
	restore := func(b *box) result {
		return b.run("", slices.Concat([]string{"restore", dest, "--yes", "--clickhouse-files", files}, servers, limits)...)
	}
	parts := map[string][]string{"router": limits, "sink": nil, "timers run": nil, "gateway": {"--http", "127.0.0.1:0", "--otlp-http", "off", "--otlp-grpc", "off"}}
	waiting := map[string]*daemon{}
	steps := []string{
		backup.StepBegun, backup.StepMarked, backup.StepTables, backup.StepStream + schemas.CopiesStream, backup.StepStream + schemas.StreamDocs, backup.StepStream + schemas.StreamTimers,
		backup.StepStream + schemas.StreamEvents, backup.StepStream + schemas.StreamShards, backup.StepStream + schemas.KVStream,
		stepEntered, stepStored, stepProven, stepUnmarked,
	}
	for _, step := range steps {
		killed := *b
		killed.env = append(slices.Clone(b.env), restoreCrashEnv+"="+step)
		if r := restore(&killed); r.code != -1 {
			t.Fatalf("after %s: it was not killed: exit %d, %s%s", step, r.code, r.out, r.err)
		}
		if _, err := registry.Open(t.Context(), srv.NC()); !errors.Is(err, schemas.ErrRestoring) {
			t.Errorf("killed after %s, opened: %v", step, err)
		}
		if _, err := registry.Setup(t.Context(), srv.NC(), schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, Replicas: 1}); !errors.Is(err, schemas.ErrRestoring) {
			t.Errorf("killed after %s, set up: %v", step, err)
		}
		if _, err := producer.New(t.Context(), srv.NC(), producer.Config{Topic: "app"}); err == nil {
			t.Errorf("killed after %s, a producer sends", step)
		}
		if step == steps[0] {
			for name, args := range parts {
				waiting[name] = b.background(slices.Concat(strings.Fields(name), args, servers, []string{"--log-format", "json"})...)
			}
		}
		for name, d := range waiting {
			d.says("is being restored into NATS")
			if strings.Contains(d.stderr(), `"message":"ready"`) {
				t.Errorf("killed after %s, a %s started: %s", step, name, d.stderr())
			}
		}
	}
	for _, args := range [][]string{append([]string{"up", "--ports", "auto"}, servers...), append([]string{"setup"}, servers...), append([]string{"query", "app"}, servers...), append([]string{"repair"}, servers...)} {
		if r := b.run("", args...); r.code != exitFailed || !strings.Contains(r.err, "almanac restore") {
			t.Errorf("%s: exit %d, %s", args[0], r.code, r.err)
		}
	}
	if r := restore(b); r.code != exitOK {
		t.Fatalf("in the end: exit %d, %s%s", r.code, r.out, r.err)
	}
	for _, d := range waiting {
		d.says(`"message":"ready"`)
	}
	b.ok("one more\n", append([]string{"send", "app"}, servers...)...)
	if n := strings.TrimSpace(b.ok("", append([]string{"query", "app", "--count", "-o", "table"}, servers...)...)); n != "301" {
		t.Errorf("%s events are found, of 300 that were restored and one", n)
	}
	b.ok("", append([]string{"verify"}, servers...)...)
}
