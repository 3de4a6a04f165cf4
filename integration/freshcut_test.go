package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
)

// readerOn reads over a connection that the test may cut, and ahead over another.
func (e *env) readerOn(nc *nats.Conn) *query.Reader {
	e.t.Helper()
	r := e.lonelyOn(nc)
	e.background(r.Run)
	return r
}

// following is a reader of many queries.
func (e *env) following() *query.Reader { return e.readerOn(e.connect()) }

// users are those of all events that a query finds.
func (e *env) users(r *query.Reader) ([]string, error) {
	page, err := answered(func() (*query.Page, error) {
		return r.Query(e.t.Context(), query.Request{Topic: "app", Limit: query.MaxLimit})
	})
	if err != nil {
		return nil, err
	}
	var users []string
	for _, raw := range page.Events {
		var event struct {
			User string `json:"user_id"`
		}
		if err := json.Unmarshal(raw, &event); err != nil {
			return nil, err
		}
		users = append(users, event.User)
	}
	return users, nil
}

// A reader that is asked all the time, and whose connection is lost again and again,
// has in every answer what was accepted before, once, while it is routed and stored.
func TestFreshOverLostConnections(t *testing.T) {
	t.Parallel()
	e := running(t, oneLaneTopic())
	nc := e.connect()
	r := e.readerOn(nc)
	p := e.producer("app")
	for i := range 120 {
		if err := p.Publish(t.Context(), producer.Event{UserID: fmt.Sprint("u-", i), Message: "x"}); err != nil {
			t.Fatal(err)
		}
		if i%20 == 10 {
			if err := nc.ForceReconnect(); err != nil {
				t.Fatal(err)
			}
		}
		var users []string
		eventually(t, 20*time.Second, func() (err error) { users, err = e.users(r); return err })
		if seen := unique(users); len(users) != i+1 || len(seen) != i+1 || !seen[fmt.Sprint("u-", i)] {
			t.Fatalf("after event %d an answer has %d events of %d users: %v", i, len(users), len(seen), users)
		}
	}
}

func unique(all []string) map[string]bool {
	seen := map[string]bool{}
	for _, s := range all {
		seen[s] = true
	}
	return seen
}

// NATS is restored from an older copy of its directory under a reader that is asked all
// the time. What it remembered of how far the lane was routed lies above what is
// accepted from now on, which it shows all the same, and what is gone it does not.
func TestFreshAfterNATSWasPutBack(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	dir, port := embeddedtest.NATSDir(t), 0
	run := func() (stop func()) {
		t.Helper()
		server, err := embedded.NewNATS(embedded.NATSConfig{Dir: dir, Port: port, MaxStoreBytes: 8 << 30})
		if err != nil {
			t.Fatal(err)
		}
		stop = embeddedtest.Run(t, server)
		srv.NATS, srv.NATSURL = server, server.ClientURL()
		_, _ = fmt.Sscanf(srv.NATSURL, "nats://127.0.0.1:%d", &port)
		return stop
	}
	stop := run()
	e := setUp(t, srv, oneLaneTopic())
	topic := oneLaneTopic()
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	stopRouter := e.router()
	nc := e.connect()
	r := e.readerOn(nc)
	users := func(from, to int, run string) (want []string) {
		for i := from; i < to; i++ {
			want = append(want, fmt.Sprint(run, "-", i))
		}
		return want
	}
	publish := func(names []string) {
		t.Helper()
		p := e.producer("app")
		for _, u := range names {
			if err := p.Publish(t.Context(), producer.Event{UserID: u, Message: "x"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	routed := func(n uint64) {
		t.Helper()
		eventually(t, 20*time.Second, func() error {
			shards, err := r.Shards(t.Context(), "app", "")
			if err == nil && (len(shards) != 1 || shards[0].Frames != n) {
				err = fmt.Errorf("the shards are %+v, want one with %d frames", shards, n)
			}
			return err
		})
	}
	check := func(want []string) {
		t.Helper()
		var got []string
		eventually(t, 20*time.Second, func() (err error) { got, err = e.users(r); return err })
		seen := unique(got)
		for _, u := range want {
			if !seen[u] {
				t.Errorf("%s is not among %v", u, got)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d events, want %d: %v", len(got), len(want), got)
		}
	}
	kept := users(0, 5, "kept")
	publish(kept)
	routed(5)
	stopRouter()
	stop()
	older := filepath.Join(t.TempDir(), "older")
	if err := os.CopyFS(older, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	stop = run()
	stopRouter = e.router()
	gone := users(0, 20, "gone")
	publish(gone)
	routed(25)
	check(append(kept, gone...))
	stopRouter()
	check(append(kept, gone...)) // by a standing that says 25
	lost := nc.Stats().Reconnects
	stop()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(older)); err != nil {
		t.Fatal(err)
	}
	stop = run()
	defer stop()
	again := users(0, 3, "again")
	publish(again)
	eventually(t, 20*time.Second, func() error {
		if nc.Stats().Reconnects == lost {
			return fmt.Errorf("the reader has not noticed")
		}
		return nil
	})
	check(append(kept, again...))
	e.router()
	check(append(kept, again...))
}
