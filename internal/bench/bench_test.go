package bench

import (
	"context"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

func config(t testing.TB) Config {
	var srv *embeddedtest.Servers
	pprof.Do(context.Background(), pprof.Labels(LabelPart, "nats"), func(context.Context) {
		srv = embeddedtest.Start(t, embeddedtest.WithSync())
	})
	nc, err := nats.Connect(srv.NATSURL, nats.Timeout(20*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	reg, err := registry.Setup(t.Context(), nc, schemas.StreamLimitsFor(srv.NATS.StoreLimit()))
	if err != nil {
		t.Fatal(err)
	}
	db, err := tables.Open(srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return Config{NATS: nc, NATSURL: srv.NATSURL, Registry: reg, DB: db, EnginePID: srv.Engine.PID(), clickhouse: srv.HTTPDSN()}
}

// A small run gives every figure, and counts every event.
func TestRun(t *testing.T) {
	cfg := config(t)
	cfg.Events, cfg.Topics = 50_000, 2
	res, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", *res)
	for name, v := range map[string]float64{
		"events_per_second": res.EventsPerSecond, "ceiling": res.CeilingEventsPerSecond, "ratio": res.Ratio,
		"wire": res.WireBytes, "stream": res.StreamDisk, "table": res.TableDisk, "frames": float64(res.Frames), "engine cpu": res.CPUMicros["clickhouse"],
	} {
		t.Run(name, func(t *testing.T) {
			if v <= 0 {
				t.Errorf("%s is %v", name, v)
			}
		})
	}
}

// BenchmarkPipeline is the default run, once: go test -run '^$' -bench Pipeline -benchtime 1x ./internal/bench
func BenchmarkPipeline(b *testing.B) {
	for b.Loop() {
		res, err := Run(b.Context(), config(b))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(res.EventsPerSecond, "events/s")
		b.ReportMetric(res.CeilingEventsPerSecond, "ceiling/s")
		b.ReportMetric(res.Ratio, "ratio")
		b.Logf("%+v", *res)
	}
}
