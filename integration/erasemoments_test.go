package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// thirds publishes frames of 30 events each, 10 of them of u-7, all at one time.
func (e *env) thirds(frames int, at time.Time) {
	e.t.Helper()
	p := e.producer("app", wholeFrames)
	for range frames {
		for n := range 30 {
			p.Log(producer.Event{Time: at, UserID: []string{"u-7", "u-1", "u-2"}[n%3], Message: fmt.Sprint(n)})
		}
		e.flush(p)
	}
}

// olderCopy keeps those rows of a topic that fulfil a condition. restore has a shard's partition be what was kept of it.
func (e *env) olderCopy(s registry.Shard, where string) (restore func()) {
	e.t.Helper()
	older := sql.QuotedTable(e.srv.Database, "Older")
	e.exec("CREATE TABLE %s AS %s", older, e.table(s.Topic))
	e.exec("INSERT INTO %s SELECT * FROM %s WHERE %s", older, e.table(s.Topic), where)
	return func() {
		e.exec("ALTER TABLE %s REPLACE PARTITION ID '%s' FROM %s", e.table(s.Topic), schemas.PartitionID(s.Month, s.ID), older)
	}
}

// ran enters an erasure of u-7 and carries it out, by an eraser that calls at at its points.
func (e *env) ran(at func(point string)) (ledger.Erasure, error) {
	e.t.Helper()
	x := e.eraser(func(c *erasure.Config) { c.Crash = at })
	job, err := x.Start(e.t.Context(), erasure.Request{Topic: "app", Users: []string{"u-7"}})
	if err != nil {
		e.t.Fatal(err)
	}
	return x.Run(e.t.Context(), "app", job.ID)
}

// ClickHouse goes back once an erasure waits for nothing any more, and sinks store its rows again between the count in a shard and the deletion:
// these are counted too, so that verify misses none.
func TestEraseWhileRowsAreStoredAgain(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 100_000))
	e.router()
	stop := e.sink()
	e.thirds(3, feb(1, 1000))
	e.stored("app", 90, 30*time.Second)
	stop()
	restore := e.olderCopy(e.shards("app")[0], "pos = 1")
	var waited, counted sync.Once
	job, err := e.ran(func(point string) {
		switch point {
		case "erase.settled":
			waited.Do(restore)
		case "erase.after-intent":
			counted.Do(func() {
				e.sink()
				e.stored("app", 90, 30*time.Second)
			})
		}
	})
	if err != nil || job.State != ledger.Erased || job.Rows != 30 {
		t.Errorf("%+v, %v; want 30 rows", job, err)
	}
	e.stored("app", 60, 10*time.Second)
	if rep := e.verify(90); rep.Erased != 30 {
		t.Errorf("verify: %+v", rep.Totals)
	}
}

// A table that was emptied has nothing of a shard stored whose last frame an erasure took whole: its floor says where no sink goes below,
// and not that rows are there.
func TestFloorOfAnEmptiedTable(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 100_000))
	e.router()
	stop := e.sink()
	p := e.producer("app", wholeFrames)
	for _, users := range [][]string{{"u-1", "u-7", "u-7"}, {"u-7"}} { // of the first most goes, and all of the last
		for n := range 10 * len(users) {
			p.Log(producer.Event{Time: feb(n, 1000), UserID: users[n%len(users)]})
		}
		e.flush(p)
	}
	e.stored("app", 40, 30*time.Second)
	e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	stop()
	waits := func() uint64 {
		t.Helper()
		n, err := e.reader().WaitStored(t.Context(), []string{"app"}, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if s := e.shards("app")[0]; s.Floor == 0 {
		t.Fatalf("it has no floor: %+v", s)
	}
	if n := waits(); n != 0 {
		t.Errorf("%d events wait, and all are stored", n)
	}
	e.exec("TRUNCATE TABLE %s", e.table("app"))
	if waits() == 0 {
		t.Error("the table is empty, and all passes for stored")
	}
	e.sink()
	e.stored("app", 10, 30*time.Second)
	eventually(t, 10*time.Second, func() error {
		if n := waits(); n > 0 {
			return fmt.Errorf("%d events wait, and all are stored again", n)
		}
		return nil
	})
	e.verify(40)
}

// Rows are gone from below a floor that no erasure counted. No sink stores them again, so nothing waits for them: verify names them, and the
// next erasure ends.
func TestUncountedRowsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	e := running(t, oneLane("app", 100_000))
	p := e.producer("app", wholeFrames)
	for _, user := range []string{"u-1", "u-7"} {
		for n := range 10 {
			p.Log(producer.Event{Time: feb(n, 1000), UserID: user})
		}
		e.flush(p)
	}
	e.stored("app", 20, 30*time.Second)
	e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	s := e.shards("app")[0]
	record, err := e.reg.ErasureRecord(t.Context(), s.Ref())
	if err != nil || len(record.Gone) == 0 {
		t.Fatalf("%+v, %v", record, err)
	}
	record.Gone = nil
	data, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	e.put(record.Key(), string(data))
	if n, err := e.reader().WaitStored(t.Context(), []string{"app"}, 0, nil); err != nil || n != 0 {
		t.Errorf("%d events wait (%v), and no sink will store any", n, err)
	}
	if job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-1"}}); job.Rows != 10 {
		t.Errorf("%d rows went, want 10", job.Rows)
	}
}

// ClickHouse is restored from an older copy after an erasure counted its rows for the last time, and before they are counted once more
// after the mark that it is applied: nothing of the user stays.
func TestEraseMarkedInAnOlderCopy(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"erase.summed", "erase.noted"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			e := start(t, oneLane("app", 100_000))
			e.router()
			stop := e.sink()
			e.thirds(1, feb(1, 1000))
			e.stored("app", 30, 30*time.Second)
			stop()
			restore := e.olderCopy(e.shards("app")[0], "1")
			var once sync.Once
			job, err := e.ran(func(point string) {
				if point == at {
					once.Do(func() {
						e.exec("TRUNCATE TABLE %s", sql.QuotedTable(e.srv.Database, schemas.TableLedger))
						restore()
					})
				}
			})
			if err != nil || job.State != ledger.Erased || job.Rows != 10 {
				t.Errorf("%+v, %v; want 10 rows", job, err)
			}
			if n := e.count("SELECT countIf(user_id = 'u-7') FROM %s", e.table("app")); n != 0 {
				t.Errorf("%d rows of the user are there", n)
			}
			if err := e.reg.WithThird(e.db).UnlessBehind(t.Context(), "app"); err != nil {
				t.Error(err)
			}
			e.verify(30)
		})
	}
}

// Retention drops a shard while a purge looks whether ClickHouse has its rows: the purge goes on.
func TestPurgeWhileRetentionDropsAShard(t *testing.T) {
	t.Parallel()
	topic := oneLane("app", 60)
	topic.KeepDays = 30
	e := start(t, topic)
	e.router()
	stop := e.sink()
	e.thirds(3, time.Now())
	e.stored("app", 90, 30*time.Second)
	shards := e.closed("app", 30*time.Second)
	closed := shards[slices.IndexFunc(shards, func(s registry.Shard) bool { return s.Status == registry.Closed })]
	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	stop()
	nc := e.connect()
	j, err := retention.New(t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.sinkDB, Now: func() time.Time { return time.Now().AddDate(0, 0, 60) }})
	if err != nil {
		t.Fatal(err)
	}
	var purging, dropped atomic.Bool
	x := e.eraser(func(c *erasure.Config) {
		c.Crash = func(point string) {
			switch {
			case point == "erase.before-purge":
				purging.Store(true)
			case point == "erase.before-rows" && purging.Load() && dropped.CompareAndSwap(false, true):
				eventually(t, 10*time.Second, func() error {
					err := j.Round(t.Context())
					now, lost := e.reg.Shard(t.Context(), closed.Ref())
					if lost == nil && now.Status != registry.Dropped {
						return errors.Join(err, fmt.Errorf("it is %s", now.Status))
					}
					return lost
				})
			}
		}
	})
	if _, err := x.Purge(t.Context(), "app", job.ID); err != nil || !dropped.Load() {
		t.Errorf("dropped: %t, and the purge ended with %v", dropped.Load(), err)
	}
	e.verify(90)
}
