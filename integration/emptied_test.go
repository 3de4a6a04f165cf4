package integration

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/sinks"
)

// A topic's table that is emptied or dropped gets its rows back from SHARDS by itself: of every lane,
// also where nothing comes any more.
func TestEmptiedTables(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]string{"truncated": "TRUNCATE TABLE %s", "dropped": "DROP TABLE %s SYNC"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := running(t, newTopic("app"), docsTopic())
			c := e.documents("customers")
			create(t, c, "d-", "p", 30)
			e.stored("customers", 30, time.Minute)
			e.clean(e.cleaner(), cold)
			te := e.timers()
			te.createTimers(20, func(int) time.Time { return time.Now().Add(time.Hour) })
			e.stored(schemas.DefaultTimerTopic, 20, time.Minute)
			p := e.producer("app")
			e.say(p, 40)
			e.stored("app", 40, time.Minute)
			for _, topic := range []string{"customers", schemas.DefaultTimerTopic, "app"} {
				e.exec(how, e.table(topic))
			}
			e.stored("customers", 30, time.Minute)
			e.stored(schemas.DefaultTimerTopic, 20, time.Minute)
			e.stored("app", 40, time.Minute)
			for _, topic := range []string{"customers", schemas.DefaultTimerTopic, "app"} {
				e.verified(topic)
			}
			for i := range 30 {
				if _, err := again(c.Load)(t.Context(), fmt.Sprint("d-", i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Tables that are emptied between the look at a head and that at its frame are not taken for a fork of SHARDS: no shard leaves
// its lane, and the rows are back.
func TestEmptiedWhileCompared(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"), docsTopic())
	stopRouter, stopSink := e.router(), e.sink()
	create(t, e.documents("customers"), "d-", "p", 30)
	e.say(e.producer("app"), 40)
	e.stored("customers", 30, time.Minute)
	e.stored("app", 40, time.Minute)
	stopSink()
	stopRouter()
	var seen faults
	var compared sync.Once
	e.sink(func(c *sinkConfig) {
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) { seen.add(err) }
		c.Crash = func(point string) {
			if point == "sink.before-compare" {
				compared.Do(func() {
					for _, topic := range []string{"customers", "app"} {
						e.exec("TRUNCATE TABLE %s", e.table(topic))
					}
				})
			}
		}
	})
	eventually(t, 30*time.Second, func() error { return seen.has(sinks.ErrWentBack) })
	e.stored("customers", 30, time.Minute)
	e.stored("app", 40, time.Minute)
	if seen.has(sinks.ErrForked) == nil {
		t.Error("a shard forked")
	}
	for _, topic := range []string{"customers", "app"} {
		e.verified(topic)
	}
}

// Rows that are back by the time the head is read again are not taken for a fork either.
func TestBackWhileCompared(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	stopRouter, stopSink := e.router(), e.sink()
	e.say(e.producer("app"), 40)
	e.stored("app", 40, time.Minute)
	stopSink()
	stopRouter()
	var seen faults
	var first, second sync.Once
	compared := make(chan struct{})
	e.sink(func(c *sinkConfig) {
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) { seen.add(err) }
		c.Crash = func(point string) {
			switch point {
			case "sink.before-compare":
				first.Do(func() { e.exec("ALTER TABLE %s DETACH PARTITION ALL", e.table("app")) })
			case "sink.before-second-compare":
				second.Do(func() {
					e.exec("ALTER TABLE %s ATTACH PARTITION ALL", e.table("app"))
					close(compared)
				})
			}
		}
	})
	select {
	case <-compared:
	case <-time.After(30 * time.Second):
		t.Fatal("no frame was compared")
	}
	e.stored("app", 40, time.Minute)
	e.verified("app")
	if seen.has(sinks.ErrForked) == nil || len(e.shards("app")) != 1 {
		t.Error("a shard forked")
	}
}

// A shard forks while an erasure is to be carried out again in an older ClickHouse: it leaves its lane after that, so that the rows which
// go once more are not taken for lost, and is resolved then.
func TestForkWaitsForAnErasure(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	stopSink := e.sink()
	e.publishOf("u-7", 10)
	e.publishOf("u-1", 20)
	e.stored("app", 30, time.Minute)
	older := sql.QuotedTable(e.srv.Database, "Older")
	e.exec("CREATE TABLE %s AS %s", older, e.table("app"))
	e.exec("INSERT INTO %s SELECT * FROM %s", older, e.table("app"))
	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	stopSink()
	s := e.shards("app")[0]
	e.exec("TRUNCATE TABLE %s", e.table("app"))
	e.exec("INSERT INTO %s SELECT * REPLACE (toUUID(concat('00000000', substring(toString(id), 9))) AS id) FROM %s", e.table("app"), older)
	e.exec("TRUNCATE TABLE %s", sql.QuotedTable(e.srv.Database, schemas.TableLedger))
	var seen faults
	e.sink(func(c *sinkConfig) { c.Hooks.Fault = func(_ schemas.ShardRef, err error) { seen.add(err) } })
	eventually(t, 30*time.Second, func() error {
		now, err := e.reg.Shard(t.Context(), s.Ref())
		if err == nil && now.Fork != nil {
			t.Fatalf("it left its lane with %d rows, of which the erasure takes some", now.Fork.LeftRows)
		}
		return errors.Join(err, seen.has(registry.ErrBehind))
	})
	if _, err := e.eraser().Run(t.Context(), "app", job.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, func() error {
		now, err := e.reg.Shard(t.Context(), s.Ref())
		if err == nil && (now.Fork == nil || !now.Fork.Done) {
			err = fmt.Errorf("its frames are not moved yet: %+v", now.Fork)
		}
		return err
	})
	if n := e.count("SELECT countIf(user_id = 'u-7') FROM %s", e.table("app")); n != 0 {
		t.Errorf("%d rows of the user are there", n)
	}
}

// A shard of documents that left its lane, and of which ClickHouse lost rows before that is decided, keeps its frames in SHARDS
// until the rows are back.
func TestForkedShardLosesItsRows(t *testing.T) {
	t.Parallel()
	e := start(t, docsTopic())
	stopRouter, stopSink := e.router(), e.sink()
	create(t, e.documents("customers"), "d-", "p", 30)
	e.stored("customers", 30, time.Minute)
	stopSink()
	stopRouter()
	s := e.shards("customers")[0]
	end, err := e.sinkDB.StoredEnd(t.Context(), s.Ref(), true)
	if err != nil {
		t.Fatal(err)
	}
	topic, err := e.reg.Topic(t.Context(), "customers")
	if err != nil {
		t.Fatal(err)
	}
	last, err := e.reg.RecordAt(t.Context(), &topic, end.Record, end.At)
	if err != nil {
		t.Fatal(err)
	}
	stored := e.messages(schemas.StreamShards, s.Ref().Subject())
	partition := schemas.PartitionID(s.Month, s.ID) // sinks store those of other lanes again
	e.exec("ALTER TABLE %s DETACH PARTITION ID '%s'", e.table("customers"), partition)
	if err := e.reg.Leave(t.Context(), s.Ref(), registry.Fork{LeftHead: end.Head, LeftRows: end.Rows, Stored: last}); err != nil {
		t.Fatal(err)
	}
	var seen faults
	e.router()
	e.sink(func(c *sinkConfig) {
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) { seen.add(err) }
	})
	eventually(t, 30*time.Second, func() error { return seen.has(sinks.ErrWentBack) })
	if left := e.messages(schemas.StreamShards, s.Ref().Subject()); len(left) != len(stored) {
		t.Errorf("%d of %d frames are left", len(left), len(stored))
	}
	lost := func() (rows uint64) {
		for _, a := range e.plan().Actions {
			if a.Do == repair.Lost && a.Where == s.Ref().String() {
				rows += a.Rows
			}
		}
		return rows
	}
	if n := lost(); n != end.Rows {
		t.Errorf("repair names %d rows that are lost, want %d", n, end.Rows)
	}
	e.exec("ALTER TABLE %s ATTACH PARTITION ID '%s'", e.table("customers"), partition)
	eventually(t, 30*time.Second, func() error {
		now, err := e.reg.Shard(t.Context(), s.Ref())
		if err != nil || now.Fork.Done {
			return err
		}
		return errors.New("the rows are back, and the shard waits")
	})
	e.stored("customers", 30, time.Minute)
	if n := lost(); n != 0 {
		t.Errorf("repair names %d rows that are lost, and they are back", n)
	}
}

// What is derived from a metric is whole again after part of it was deleted by hand, a part or a
// table was lost, while everything runs.
func TestDerivedDeleted(t *testing.T) {
	t.Parallel()
	e := start(t, dozensOf(t, kinds.Metric, "cpu"))
	e.router()
	e.sink()
	e.rollups(func(c *rollups.Config) { c.CheckEvery = 100 * time.Millisecond })
	p := e.producer("cpu")
	for i := range 60 { // each second one twice
		for range 1 + i%2 {
			m := metric.Point{Name: "cpu", Value: float64(i), Points: metric.Gauge, Time: time.Date(2026, 2, 1, 12, 0, i, 0, time.UTC), Labels: []schemas.Attr{schemas.String("host", fmt.Sprint("h-", i%20))}}
			ev, err := m.Event()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Submit(t.Context(), ev, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.flush(p)
	e.finalUsage("cpu")
	e.examined("cpu")
	listed, marks := "SELECT uniqExact(shard, type, series) FROM "+e.table("cpu.series")+" WHERE type != ''", "SELECT uniqExact(shard, id, pos) FROM "+e.table("cpu.repeats")+" WHERE id != "+sql.NoID
	series, repeats := e.count("%s", listed), e.count("%s", marks)
	if series < 20 || repeats != 30 {
		t.Fatalf("%d series and %d marks to begin with", series, repeats)
	}
	sync := " SETTINGS mutations_sync = 2"
	for _, how := range []string{
		"ALTER TABLE " + e.table("cpu.series") + " DELETE WHERE type != '' AND series % 2 = 0" + sync,
		"ALTER TABLE " + e.table("cpu.series") + " DELETE WHERE type = ''" + sync,
		"TRUNCATE TABLE " + e.table("cpu.series"),
		"DROP TABLE " + e.table("cpu.series") + " SYNC",
		"ALTER TABLE " + e.table("cpu.repeats") + " DELETE WHERE id != " + sql.NoID + " AND cityHash64(id) % 2 = 0" + sync,
		"TRUNCATE TABLE " + e.table("cpu.repeats"),
		"DROP TABLE " + e.table("cpu.repeats") + " SYNC",
	} {
		e.exec("%s", how)
		eventually(t, 20*time.Second, func() error {
			s, err := e.ask("%s", listed)
			if err != nil {
				return err
			}
			r, err := e.ask("%s", marks)
			if err == nil && (s != series || r != repeats) {
				err = fmt.Errorf("after %s: %d series and %d marks, want %d and %d", how, s, r, series, repeats)
			}
			return err
		})
		e.examined("cpu")
	}
}
