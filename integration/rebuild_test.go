package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

var errKilled = errors.New("killed")

// A rebuild is killed at every point, once and again, while events flow; run again
// it ends right: every event once, the old table kept.
func TestRebuild(t *testing.T) {
	t.Parallel()
	topic := replayTopic(2)
	e := running(t, topic)
	const n = 2000
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	e.fill("app", n, at)
	e.stored("app", n, 20*time.Second)
	e.purgeSome("app", 3) // some of it only ClickHouse has

	ctx, stop := context.WithCancel(t.Context())
	var sent atomic.Uint64
	done := make(chan struct{})
	p := e.producer("app")
	go func() { // events flow all the time
		defer close(done)
		for i := 0; i < 1500 && ctx.Err() == nil; i++ {
			if err := p.Publish(ctx, schemas.Event{Time: at.Add(time.Duration(i) * time.Second), UserID: fmt.Sprint(i % 50), Message: fmt.Sprint("live ", i)}); err == nil {
				sent.Add(1)
			}
		}
	}()
	nc := e.connect()
	cfg := rebuild.Config{NATS: nc, Registry: e.registry(nc), DB: e.db}
	points := []string{"rebuild.after-create", "rebuild.after-batch", "rebuild.after-freeze", "rebuild.before-swap", "rebuild.after-swap"}
	for _, point := range points {
		killed := cfg
		killed.Crash = func(at string) error {
			if at == point {
				return rebuild.Crashed(fmt.Errorf("%w at %s", errKilled, at))
			}
			return nil
		}
		if _, err := rebuild.Run(t.Context(), killed, "app", true); !errors.Is(err, errKilled) {
			t.Fatalf("%s: %v", point, err)
		}
		plan, err := rebuild.Look(t.Context(), cfg, "app")
		if err != nil || plan.Unfinished == "" {
			t.Fatalf("%s: %+v %v", point, plan, err)
		}
		if point == "rebuild.after-batch" { // and one that is given up
			if err := rebuild.Abort(t.Context(), cfg, "app"); err != nil {
				t.Fatal(err)
			}
		}
		if point != "rebuild.after-create" { // that one is killed again, further on
			if _, err := rebuild.Run(t.Context(), cfg, "app", true); err != nil {
				t.Fatalf("after %s: %v", point, err)
			}
		}
	}
	res, err := rebuild.Run(t.Context(), cfg, "app", false)
	if err != nil || res.Inserted == 0 || res.Copied == 0 {
		t.Errorf("the last rebuild: %+v %v", res, err)
	}
	stop()
	<-done
	// Publish may have been stored and its answer not heard: verify knows.
	var rows uint64
	eventually(t, 30*time.Second, func() error {
		rep, err := e.proof("app")
		if err == nil && (!rep.OK() || rep.Pending > 0 || rep.Accepted < n+sent.Load()) {
			err = fmt.Errorf("%+v %s, sent %d", rep.Totals, rep.Problems, sent.Load())
		}
		if err == nil {
			rows = rep.Stored
		}
		return err
	})
	if ids := e.count("SELECT uniqExact(id) FROM %s", e.table("app")); ids != rows || rows > n+sent.Load()+1 {
		t.Errorf("%d rows with %d ids, %d were sent", rows, ids, n+sent.Load())
	}
	if got := e.count("SELECT count() FROM %s", sql.QuotedTable(e.srv.Database, res.Before)); got != res.Rows || !strings.HasPrefix(res.Before, "app_before_2") {
		t.Errorf("%s has %d rows, want %d", res.Before, got, res.Rows)
	}
	// The views are those of the new table, and the kept one belongs to no topic.
	e.count("SELECT count() FROM %s", sql.QuotedTable(e.srv.Database, schemas.RecentView("app")))
	if got := e.count("SELECT sum(stored_rows) FROM %s", sql.QuotedTable(e.srv.Database, schemas.ViewShards)); got != rows {
		t.Errorf("the view of shards has %d rows, want %d", got, rows)
	}
	if rep, err := e.proof(""); err != nil || len(rep.Topics) != 1 {
		t.Errorf("verify sees the topics %+v %v", rep.Topics, err)
	}
	if kept, err := e.db.Kept(t.Context(), "app"); err != nil || len(kept) != 1 || kept[0] != res.Before {
		t.Errorf("kept are %q %v, want %s", kept, err, res.Before)
	}
	t.Logf("sinks waited %s; %d events flowed meanwhile", res.Frozen, sent.Load())
}

// Rows that are lost in the table and not in SHARDS come back; a column that was
// never declared is not lost silently; what differs without a reason is refused.
func TestRebuildHeals(t *testing.T) {
	t.Parallel()
	e := running(t, replayTopic(2))
	const n = 1000
	e.fill("app", n, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	e.stored("app", n, 20*time.Second)
	nc := e.connect()
	cfg := rebuild.Config{NATS: nc, Registry: e.registry(nc), DB: e.db}
	if err := e.hand.Conn().Exec(t.Context(), "DELETE FROM "+e.table("app")+" WHERE n = 500"); err != nil {
		t.Fatal(err)
	}
	res, err := rebuild.Run(t.Context(), cfg, "app", true)
	if err != nil || res.Rows != n {
		t.Errorf("%+v %v", res, err)
	}
	e.verify(n)
	if err := e.hand.Conn().Exec(t.Context(), "ALTER TABLE "+e.table("app")+" ADD COLUMN mine String"); err != nil {
		t.Fatal(err)
	}
	if _, err := rebuild.Run(t.Context(), cfg, "app", true); !errors.Is(err, rebuild.ErrColumns) {
		t.Errorf("with a column of one's own: %v", err)
	}
	if err := e.hand.Conn().Exec(t.Context(), "ALTER TABLE "+e.table("app")+" DROP COLUMN mine"); err != nil {
		t.Fatal(err)
	}
	// Rows that appear in the fresh table have no source.
	killed := cfg
	killed.Crash = func(at string) error {
		if at == "rebuild.after-freeze" {
			return e.db.Change(t.Context(), &tables.Select{SQL: "INSERT INTO " + sql.QuotedTable(e.srv.Database, "app.rebuild") + " SELECT * FROM " + e.table("app") + " LIMIT 1"})
		}
		return nil
	}
	if _, err := rebuild.Run(t.Context(), killed, "app", true); err != nil { // found, and the shard copied again
		t.Errorf("with a row too many: %v", err)
	}
	e.verify(n)
}

// What was erased or dropped does not come back, though SHARDS still has it.
func TestRebuildErased(t *testing.T) {
	t.Parallel()
	topic := replayTopic(1)
	topic.Rotate.Rows = 300
	e := start(t, topic)
	e.router()
	stop := e.sink()
	const n, mine = 1000, 20 // of each of fifty users
	e.fill("app", n, feb(1, 2))
	e.stored("app", n, 20*time.Second)
	e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	nc := e.connect()
	cfg := rebuild.Config{NATS: nc, Registry: e.registry(nc), DB: e.db}
	res, err := rebuild.Run(t.Context(), cfg, "app", true)
	if err != nil || res.Rows != n-mine || res.Inserted != 0 {
		t.Errorf("%+v %v", res, err)
	}
	e.verify(n)
	shards := slices.DeleteFunc(e.closed("app", 30*time.Second), func(s registry.Shard) bool { return s.Status != registry.Closed })
	stop()
	gone := e.count("SELECT count() FROM %s WHERE shard = %d", e.table("app"), uint64(shards[0].ID))
	seen, err := e.reg.DerivedDrops(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	marked, err := e.reg.MarkDropping(t.Context(), shards[0].Ref(), seen, gone, "test", feb(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.reg.MarkDropped(t.Context(), marked); err != nil {
		t.Fatal(err)
	}
	if res, err = rebuild.Run(t.Context(), cfg, "app", true); err != nil || res.Rows != n-mine-gone || gone == 0 {
		t.Errorf("without the dropped shard's %d: %+v %v", gone, res, err)
	}
	if got := e.count("SELECT count() FROM %s", e.table("app")); got != n-mine-gone {
		t.Errorf("%d rows, want %d", got, n-mine-gone)
	}
}
