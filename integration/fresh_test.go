package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// An event that Publish accepted is found by the very next query, while no sink
// runs and ClickHouse has nothing of it. Not parallel, for the sake of the figure.
func TestFreshWithoutSink(t *testing.T) {
	topic := newTopic("app")
	e := start(t, topic)
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	e.router()
	r := e.following()
	p := e.producer("app")
	const n = 250
	took := make([]time.Duration, n)
	for i := range n {
		user := fmt.Sprintf("u-%d", i)
		if err := p.Publish(t.Context(), producer.Event{UserID: user, Message: "here"}); err != nil {
			t.Fatal(err)
		}
		accepted := time.Now()
		page, err := answered(func() (*query.Page, error) {
			return r.Query(t.Context(), query.Request{Topic: "app", Where: "user_id = '" + user + "'", Limit: 10})
		})
		took[i] = time.Since(accepted)
		if err != nil || len(page.Events) != 1 {
			t.Fatalf("event %d: the query after its acceptance found %d (%v)", i, len(page.Events), err)
		}
	}
	slices.Sort(took)
	t.Logf("accepted to returned, %d events: p50 %s, p99 %s, worst %s", n, took[n/2], took[n*99/100], took[n-1])
	if got := e.count("SELECT count() FROM %s", e.table("app")); got != 0 {
		t.Errorf("ClickHouse has %d events, want none", got)
	}
}

// Before a sink has made the topic's table, an event is found, and what a query would
// read of the table is nothing.
func TestBeforeTheTable(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	e.router()
	r := e.following()
	if err := e.producer("app").Publish(t.Context(), producer.Event{UserID: "u-1", Message: "here"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, func() error {
		shards, err := e.reg.Shards(t.Context(), "app", 0)
		if err == nil && len(shards) == 0 {
			err = errors.New("not routed yet")
		}
		return err
	})
	req := query.Request{Topic: "app", Where: "user_id = 'u-1'"}
	eventually(t, 10*time.Second, func() error { // the reader's list of shards may be a few seconds old
		plan, err := r.Explain(t.Context(), req)
		if err == nil && (len(plan.Shards) != 1 || plan.Rows != 0) {
			err = fmt.Errorf("explained as %+v; want one shard and no rows", plan)
		}
		return err
	})
	if page, err := r.Query(t.Context(), req); err != nil || len(page.Events) != 1 {
		t.Errorf("%d events: %v", len(page.Events), err)
	}
}

// From its acceptance until long after its insert into ClickHouse an event is in
// every answer, and once, whatever the routers, the sinks and rotation do
// meanwhile, alone and among the pages of all events.
func TestFreshAcrossTheHandOver(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes, topic.Rotate = 2, schemas.Rotation{Rows: 30}
	e := start(t, topic)
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	e.router()
	e.router()
	e.sink()
	e.sink()
	r := e.following()
	const publishers, each = 4, 40
	var mu sync.Mutex
	accepted := map[string]bool{}
	known := func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		all := make(map[string]bool, len(accepted))
		for k := range accepted {
			all[k] = true
		}
		return all
	}

	// Meanwhile, all events again and again: at once, and page by page, newest
	// first and oldest first.
	ctx, stop := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	ways := []query.Request{{Limit: 1000}, {Limit: 37}, {Limit: 37, Ascending: true}}
	reads, pagesRead := make([]int, len(ways)), make([]int, len(ways))
	for i, req := range ways {
		readers.Go(func() {
			for ctx.Err() == nil {
				want, seen := known(), map[string]bool{}
				req.Topic, req.To = "app", time.Now()
				events, read, err := pages(ctx, r, req)
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("%+v: %v", req, err)
					}
					return
				}
				for _, user := range column(events, "user_id") {
					if seen[user] {
						t.Errorf("%+v: %s came twice", req, user)
					}
					seen[user] = true
				}
				for user := range want {
					if !seen[user] {
						t.Errorf("%+v: %s was accepted before and is not among %d events on %d pages", req, user, len(events), len(read))
					}
				}
				reads[i], pagesRead[i] = reads[i]+1, pagesRead[i]+len(read)
			}
		})
	}

	queries := make([]int, publishers)
	parallel(t, publishers, func(n int) {
		p := e.producer("app")
		for i := range each {
			user := fmt.Sprintf("u-%d-%d", n, i)
			if err := p.Publish(t.Context(), producer.Event{UserID: user, Message: "here"}); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			accepted[user] = true
			mu.Unlock()
			if i%10 != 0 { // every tenth is watched, the others keep it company
				continue
			}
			for last := false; ; queries[n]++ {
				page, err := answered(func() (*query.Page, error) {
					return r.Query(t.Context(), query.Request{Topic: "app", Where: "user_id = '" + user + "'", Limit: 10})
				})
				if err != nil {
					t.Errorf("%s: query %d after its acceptance: %v", user, queries[n], err)
					return
				}
				if len(page.Events) != 1 {
					t.Errorf("%s: query %d after its acceptance found %d events: %s", user, queries[n], len(page.Events), page.Events)
					return
				}
				if last {
					break
				}
				var stored uint64
				if err := e.hand.Conn().QueryRow(t.Context(), "SELECT count() FROM "+e.table("app")+" WHERE user_id = '"+user+"'").Scan(&stored); err != nil {
					t.Error(err)
					return
				}
				last = stored > 0
			}
		}
	})
	stop()
	readers.Wait()
	t.Logf("queries for one event across its hand-over, by publisher: %v; reads of all events: %v, in pages: %v", queries, reads, pagesRead)
	e.stored("app", publishers*each, 20*time.Second)
	if shards := e.closed("app", 20*time.Second); len(shards) < 4 {
		t.Errorf("%d shards, want rotation to have made 4 or more", len(shards))
	}
	e.whole("app", publishers*each)
	e.verify(publishers * each)
}
