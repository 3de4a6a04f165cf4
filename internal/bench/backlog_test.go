package bench

import (
	"context"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// backlogRate is the load behind the backlogs, events/s.
const backlogRate = 100_000

// BenchmarkBacklog says what one query costs while ClickHouse has not yet what
// came in the last 0, 1, 10 and 60 seconds: a router runs, no sink. Per query:
// ms (median), statements of ClickHouse, and microseconds of CPU in the reader, in
// NATS and in ClickHouse; first is the first query of a new reader, in ms.
//
//	go test -run '^$' -bench Backlog -benchtime 1x ./internal/bench
func BenchmarkBacklog(b *testing.B) {
	cfg := config(b).withDefaults()
	topics, err := declare(b.Context(), &cfg)
	if err != nil {
		b.Fatal(err)
	}
	route(b, &cfg)
	mark, err := producer.Connect(b.Context(), cfg.NATSURL, producer.Config{Topic: topics[0].Name, Linger: -1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = mark.Close(context.WithoutCancel(b.Context())) }()
	had := time.Duration(0)
	for _, backlog := range []time.Duration{0, time.Second, 10 * time.Second, time.Minute} {
		if backlog > had {
			stop, err := startPaced(b.Context(), &cfg, backlogRate, 0)
			if err != nil {
				b.Fatal(err)
			}
			loadedFor(b, &cfg, backlog-had)
			if _, err := stop(); err != nil {
				b.Fatal(err)
			}
			had = backlog
		}
		at := time.Now()
		if err := mark.Publish(b.Context(), schemas.Event{Time: at, Type: "mark", TraceID: "mark", UserID: "mark"}); err != nil {
			b.Fatal(err)
		}
		for _, q := range []struct {
			name string
			req  query.Request
		}{
			{"instant", query.Request{From: at, To: at.Add(1), Where: "trace_id = 'mark'"}},
			{"newest", query.Request{}},
			{"oldest", query.Request{Ascending: true}},
			{"user", query.Request{Where: "user_id = 'u-77'", Limit: 10}},
		} {
			q.req.Topic = topics[0].Name
			b.Run(fmt.Sprintf("%s/%s", backlog, q.name), func(b *testing.B) { askBacklog(b, &cfg, q.req) })
		}
	}
}

// loadedFor waits until what comes into EVENTS from now on spans so long.
func loadedFor(b *testing.B, cfg *Config, d time.Duration) {
	b.Helper()
	began := time.Now()
	events, err := cfg.Registry.JetStream().Stream(b.Context(), schemas.StreamEvents)
	if err != nil {
		b.Fatal(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := events.Info(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if info.State.LastTime.Sub(began) >= d {
			return
		}
		<-tick.C
	}
}

// route runs a router until the test ends.
func route(b *testing.B, cfg *Config) {
	b.Helper()
	nc, err := nats.Connect(cfg.NATSURL, nats.Timeout(20*time.Second))
	if err != nil {
		b.Fatal(err)
	}
	r, err := router.New(b.Context(), nc, router.Config{Registry: cfg.Registry})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	b.Cleanup(func() { cancel(); <-done; nc.Close() })
}

// askBacklog asks for one page again and again, for two seconds.
func askBacklog(b *testing.B, cfg *Config, req query.Request) {
	r, stop, err := following(cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	ask := func() time.Duration {
		began := time.Now()
		page, err := r.Query(b.Context(), req)
		if err != nil || len(page.Events) == 0 && req.Where != "user_id = 'u-77'" || len(page.Notes) > 0 {
			b.Fatalf("%+v: %v", page, err)
		}
		return time.Since(began)
	}
	first := ask()
	statements := func() (n uint64) {
		if err := cfg.DB.Conn().QueryRow(b.Context(), "SELECT value FROM system.events WHERE event = 'SelectQuery'").Scan(&n); err != nil {
			b.Fatal(err)
		}
		return n
	}
	before := statements()
	meter, err := startCPU(cfg.EnginePID)
	if err != nil {
		b.Fatal(err)
	}
	var took []time.Duration
	pprof.Do(b.Context(), pprof.Labels(labelPart, "reader"), func(context.Context) {
		for began := time.Now(); len(took) < 3 || time.Since(began) < 2*time.Second; {
			took = append(took, ask())
		}
	})
	micros, _, err := meter.stop(len(took), os.Getenv("BACKLOG_PROFILE"))
	if err != nil {
		b.Fatal(err)
	}
	after := statements()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms")
	b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
	b.ReportMetric(float64(after-before-1)/float64(len(took)), "statements")
	b.ReportMetric(micros["nats"], "nats-µs")
	b.ReportMetric(micros["clickhouse"], "clickhouse-µs")
	b.ReportMetric(micros["reader"]+micros["gc"]+micros["other"], "reader-µs")
	b.ReportMetric(0, "ns/op")
}
