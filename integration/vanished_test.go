package integration

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	attack "github.com/almanac-events/almanac/integration/faults"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// behind opens the engine through a link that can fail.
func (e *env) behind() (*tables.DB, *attack.Proxy) {
	e.t.Helper()
	u, err := url.Parse(e.srv.ClickHouseHTTP)
	if err != nil {
		e.t.Fatal(err)
	}
	link, err := attack.NewProxy(u.Host)
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(link.Close)
	u.Host, u.User, u.Path = link.Addr(), url.UserPassword(e.srv.User, e.srv.Password), e.srv.Database
	db, err := tables.Open(u.String())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = db.Close() })
	return db, link
}

// ClickHouse vanishes from every connection of a sink, which stand on, and another host
// acknowledges what is sent: no timeout is waited for, and nothing is lost or
// stored twice.
func TestEngineVanishes(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	db, link := e.behind()
	var vanished atomic.Int64
	db.SetHooks(tables.Hooks{Vanished: func() { vanished.Add(1) }})
	e.sink(func(c *sinkConfig) {
		c.DB, c.InsertTimeout = db, time.Hour
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) { e.logf("sink: %v", err) }
	})
	p := e.producer("app")
	var said atomic.Uint64
	stop := e.background(func(ctx context.Context) error {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := p.Publish(ctx, producer.Event{UserID: "u", Message: fmt.Sprint(said.Load())}); err == nil {
				said.Add(1)
			}
			<-tick.C
		}
		return nil
	})
	passes := func(n uint64) {
		t.Helper()
		eventually(t, 30*time.Second, func() error {
			var got uint64
			err := e.hand.Conn().QueryRow(t.Context(), "SELECT count() FROM "+e.table("app")).Scan(&got)
			if err == nil && got <= n {
				err = fmt.Errorf("%d events are stored, want more than %d", got, n)
			}
			return err
		})
	}
	passes(20)
	var took []time.Duration
	for range 2 { // the second finds connections that are new, and a DB that was patient
		link.HalfOpen()
		began := time.Now()
		passes(said.Load() + 1)
		took = append(took, time.Since(began).Round(10*time.Millisecond))
	}
	t.Logf("from the fault until an event from behind it is stored: %v", slices.Sorted(slices.Values(took)))
	eventually(t, 30*time.Second, func() error { // a statement over a connection of its own meets no fault
		if vanished.Load() > 0 {
			return nil
		}
		link.HalfOpen()
		passes(said.Load() + 1)
		return errors.New("no request was found to have vanished")
	})
	stop()
	e.flush(p)
	n := p.Stats().Stored // with what was under way when it stopped, which was not reported
	if n < said.Load() {
		t.Errorf("%d events were said to be stored, counted are %d", said.Load(), n)
	}
	e.stored("app", n, 30*time.Second)
	if got := e.count("SELECT uniqExact(id) FROM %s", e.table("app")); got != n {
		t.Errorf("%d events are stored, want %d", got, n)
	}
	e.verify(n)
}
