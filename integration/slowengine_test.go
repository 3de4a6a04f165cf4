package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// engineApart gives servers an engine of their own, which may be stopped.
func engineApart(t *testing.T) *embeddedtest.Servers {
	t.Helper()
	engine, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: embeddedtest.FindEngine(t), Dir: filepath.Join(t.TempDir(), "clickhouse")})
	if err != nil {
		t.Fatal(err)
	}
	embeddedtest.Run(t, engine)
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	srv.Engine, srv.ClickHouseHTTP, srv.ClickHouseTCP, srv.DSN = engine, engine.HTTPURL(), engine.TCPAddr(), engine.DSN()
	srv.User, srv.Password, srv.Database = engine.User(), engine.Password(), engine.Database()
	return srv
}

// throttle lets a process run a tenth of the time until stop is called.
func throttle(t *testing.T, pid int) (stop func()) {
	t.Helper()
	const runs, stands = 10 * time.Millisecond, 90 * time.Millisecond
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			wait(stands)
			_ = syscall.Kill(pid, syscall.SIGCONT)
			wait(runs)
		}
	}()
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// counted counts the connections that a DB makes.
type counted struct{ made, open, mostOpen atomic.Int64 }

func (c *counted) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.made.Add(1)
	now := c.open.Add(1)
	for most := c.mostOpen.Load(); now > most && !c.mostOpen.CompareAndSwap(most, now); most = c.mostOpen.Load() {
	}
	return &countedConn{Conn: conn, of: c}, nil
}

type countedConn struct {
	net.Conn
	of     *counted
	closed atomic.Bool
}

func (c *countedConn) Close() error {
	if !c.closed.Swap(true) {
		c.of.open.Add(-1)
	}
	return c.Conn.Close()
}

// SlowEngineEnv is how many events TestEngineAtATenth works with; make faults sets
// it to ten times the default, some minutes.
const SlowEngineEnv = "ALMANAC_SLOW_ENGINE_EVENTS"

// An engine at a tenth of its speed, under full load. The backlog
// drains meanwhile, its watchers do not add to its load, and the rest is stored within
// a minute after it is fast again.
func TestEngineAtATenth(t *testing.T) {
	srv := engineApart(t)
	topic := newTopic("app")
	topic.Lanes = 16
	e := setUp(t, srv, topic)
	e.router()
	backlog := uint64(100_000)
	if s := os.Getenv(SlowEngineEnv); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		backlog = n
	}
	p := e.producer("app")
	var n uint64
	log := func(upTo uint64) {
		for ; n < upTo; n++ {
			p.Log(producer.Event{UserID: fmt.Sprint("u", n%997), Message: fmt.Sprintf("request %d took a while, and this is what it said about it", n)})
		}
	}
	log(backlog)
	e.flush(p)

	var conns counted
	db, err := tables.OpenBy(srv.HTTPDSNOf(access.UserSink), conns.dial, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	var outages atomic.Int64
	db.SetHooks(tables.Hooks{Unreachable: func(err error) { outages.Add(1); e.logf("outage: %v", err) }})
	if err := db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}

	faster := throttle(t, srv.Engine.PID())
	began := time.Now()
	before := conns.made.Load()
	e.sink(func(c *sinkConfig) {
		c.DB, c.BatchRows = db, 5000
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) {
			if !errors.Is(err, context.Canceled) {
				e.logf("sink: %v", err)
			}
		}
	})
	stop := e.background(func(ctx context.Context) error { // readers whose statements are silent for long
		var wg sync.WaitGroup
		defer wg.Wait()
		for range 24 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if body, err := db.Select(ctx, &tables.Select{SQL: "SELECT sleepEachRow(3) FORMAT Null"}); err == nil {
						_, _ = io.Copy(io.Discard, body) // or the connection would not be used again
						_ = body.Close()
					}
				}
			})
		}
		return nil
	})
	stored := func(atLeast uint64, within time.Duration) time.Duration {
		t.Helper()
		since := time.Now()
		eventually(t, within, func() error {
			got, err := e.ask("SELECT count() FROM %s", e.table("app"))
			if err == nil && got < atLeast {
				err = fmt.Errorf("%d rows are stored, want %d", got, atLeast)
			}
			return err
		})
		return time.Since(since)
	}
	slow := stored(backlog/2, time.Duration(backlog/50_000)*time.Minute)
	log(backlog + backlog/2)
	stored(backlog*3/4, time.Duration(backlog/100_000)*time.Minute)
	lasted := time.Since(began)
	// A question and a probe at a time, each a connection, and what the pools keep.
	made := conns.made.Load() - before
	if limit := int64(80 + 3*lasted/time.Second); made > limit {
		t.Errorf("%d connections in %s with an engine at a tenth of its speed, want at most %d", made, lasted.Round(time.Second), limit)
	}
	if most := conns.mostOpen.Load(); most > 70 {
		t.Errorf("%d connections at once, want at most 70: two pools of 32 and a few", most)
	}
	resp, err := (&http.Client{Timeout: time.Minute}).Get(srv.ClickHouseHTTP + "/ping")
	if err != nil {
		t.Errorf("/ping: %v", err)
	} else {
		_ = resp.Body.Close()
	}
	stop()
	faster()
	e.flush(p)
	fast := stored(n, time.Minute)
	t.Logf("at a tenth: %.0f rows/s for the first half, %d connections made, %d at once, %d outages; %s until the rest was stored at full speed",
		float64(backlog/2)/slow.Seconds(), made, conns.mostOpen.Load(), outages.Load(), fast.Round(100*time.Millisecond))
	e.verify(n)
}
