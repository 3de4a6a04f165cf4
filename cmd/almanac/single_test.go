package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/tables"
)

// A part without --http that sends its numbers to otlp_export asks its servers by itself, and not when it sends: the numbers say since
// when one is away. The last post, which is the only one here, does not say
// that the part is not ready: it stops.
func TestPartWithoutPageLooksAtItsServers(t *testing.T) {
	t.Parallel()
	var asked, posts atomic.Int32
	clickHouse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("Ok.\n"))
	}))
	t.Cleanup(clickHouse.Close)
	endpoint := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { posts.Add(1) }))
	t.Cleanup(endpoint.Close)
	o := &single{
		name: "router", s: &settings{OTLPExport: endpoint.URL, ShutdownTimeout: 20 * time.Second}, d: endpoints{nats: embeddedtest.Start(t).NATSURL},
		log: zerolog.Nop(), counts: newNumbers(zerolog.Nop()), starts: func(ops.Reason) {},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- o.run(ctx, func(context.Context) error {
			db, err := tables.Open(clickHouse.URL)
			if err != nil {
				return err
			}
			o.later(func() { _ = db.Close() })
			o.servers.UseClickHouse(db)
			o.probe = func(context.Context) []ops.Reason { return nil }
			return nil
		})
	}()
	embeddedtest.Eventually(t, maxWait, func() error {
		if n := posts.Load(); n > 0 {
			t.Errorf("its numbers were sent %d times before it looked", n)
		} else if asked.Load() < 2 {
			return errors.New("it did not look twice")
		}
		return nil
	})
	has := func(want map[string]float64, not string) error {
		all, err := o.counts.Gather(t.Context())
		if err != nil {
			return err
		}
		held := map[string]float64{}
		for _, f := range all {
			held[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
		}
		for name, value := range want {
			if got, ok := held[name]; !ok || got != value {
				return fmt.Errorf("%s is %v (%t), want %v", name, got, ok, value)
			}
		}
		if got, ok := held[not]; ok {
			return fmt.Errorf("%s is %v", not, got)
		}
		return nil
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		return has(map[string]float64{"almanac_ready": 1, "almanac_server_up": 1}, "")
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("it sent its last numbers %d times", n)
	}
	embeddedtest.Eventually(t, maxWait, func() error { return has(nil, "almanac_ready") })
}
