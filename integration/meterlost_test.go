package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/maintenance/retention"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Retention dropped the events that count, and the shard of their copies loses rows, which a sink
// stores again: the copies do not count.
func TestMeterLostCopies(t *testing.T) {
	for _, how := range []string{"all", "tail", "part"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			topic := dozensOf(t, kinds.Meter, "usage")
			e := start(t, topic)
			e.router()
			early := func() time.Time { return lifeMonth }
			stopSink := e.sink(func(c *sinkConfig) { c.Retention.Now = early })
			stop := e.rollups()
			const diffs = 12
			var first, again, more []meter.Diff
			for n := range diffs {
				d := meter.Diff{Meter: "bytes", Provider: "p", Space: "s", Cause: fmt.Sprint("c-", n), Delta: 1, Customer: customer(0), Time: lifeMonth.Add(time.Duration(n) * time.Hour)}
				first = append(first, d)
				d.Time = d.Time.AddDate(0, 1, 0)
				again = append(again, d)
				d.Cause = fmt.Sprint("d-", n)
				more = append(more, d)
			}
			e.frames("usage", first)
			if how == "tail" {
				e.frames("usage", more)
			}
			e.settledUsage("usage")
			if how == "part" { // one shard, two inserts, of which the second is lost
				e.frames("usage", again[:diffs/2])
				e.settledUsage("usage")
				e.frames("usage", again[diffs/2:])
			} else {
				e.frames("usage", again)
			}
			e.settledUsage("usage")
			e.derived("usage")
			want := diffs
			if how == "tail" {
				want *= 2
			}
			bill := func(when string) {
				t.Helper()
				r, err := query.New(e.connect(), e.reg, e.db)
				if err != nil {
					t.Fatal(err)
				}
				rep, err := usage.New(r).Report(t.Context(), usage.Request{Topic: "usage", From: lifeMonth, To: lifeMonth.AddDate(0, 2, 0), GroupBy: usage.ByCustomer})
				if err != nil || len(rep.Bills) != 1 {
					t.Fatalf("%s: %+v, %v", when, rep, err)
				}
				if fmt.Sprint(rep.Bills[0].SizeEnd) != fmt.Sprint(want) {
					t.Errorf("%s: size %v, want %d", when, rep.Bills[0].SizeEnd, want)
				}
			}
			bill("derived")
			tomorrow := time.Now().Add(25 * time.Hour)
			late := func() time.Time { return tomorrow }
			topic.KeepDays = 10 + int(tomorrow.Sub(lifeMonth.AddDate(0, 1, 0))/(24*time.Hour))
			e.apply(topic)
			nc := e.connect()
			j, err := retention.New(t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.db, Now: late})
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Minute, func() error {
				if err := j.Round(t.Context()); err != nil {
					return err
				}
				for _, s := range e.shards("usage") {
					if s.Month == schemas.MonthOf(lifeMonth.UnixNano()) && s.Status != registry.Dropped {
						return fmt.Errorf("not yet dropped: %s", describe(e.shards("usage")))
					}
				}
				return nil
			})
			bill("dropped")
			stop()
			stopSink()
			if how == "part" {
				e.exec("ALTER TABLE %s DELETE WHERE pos = 2 SETTINGS mutations_sync = 2", e.table("usage"))
			} else if how == "all" {
				e.exec("TRUNCATE TABLE %s", e.table("usage"))
			} else {
				e.exec("ALTER TABLE %s DELETE WHERE startsWith(cause, 'c-') SETTINGS mutations_sync = 2", e.table("usage"))
			}
			e.sink(func(c *sinkConfig) { c.Retention.Now = early })
			e.settledUsage("usage")
			e.rollups()
			e.derived("usage")
			bill("stored again")
		})
	}
}

// Retention drops no shard of a meter of which ClickHouse lost rows: its sums would stay short.
func TestMeterKeptForItsLostRows(t *testing.T) {
	t.Parallel()
	topic := dozensOf(t, kinds.Meter, "usage")
	e := start(t, topic)
	e.router()
	early := func() time.Time { return lifeMonth }
	e.sink(func(c *sinkConfig) { c.Retention.Now = early })
	e.rollups()
	const diffs = 30
	all := lifeDiffs(0, diffs, 5)
	e.frames("usage", all)
	e.settledUsage("usage")
	e.derived("usage")
	e.lifeBills("derived", "usage", diffs, sameName)
	closed := e.closed("usage", time.Minute)[0]
	if closed.Status != registry.Closed {
		t.Fatalf("%+v", closed)
	}
	e.exec("ALTER TABLE %s DELETE WHERE shard = %d AND cityHash64(id) %% 2 = 0 SETTINGS mutations_sync = 2", e.table("usage"), uint64(closed.ID))
	e.derived("usage") // of the rows that there are
	tomorrow := time.Now().Add(25 * time.Hour)
	topic.KeepDays = 1
	e.apply(topic)
	nc := e.connect()
	j, err := retention.New(t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.db, Now: func() time.Time { return tomorrow }})
	if err != nil {
		t.Fatal(err)
	}
	status := func() registry.Status {
		t.Helper()
		s, err := e.reg.Shard(t.Context(), closed.Ref())
		if err != nil {
			t.Fatal(err)
		}
		return s.Status
	}
	if err := j.Round(t.Context()); err == nil || !strings.Contains(err.Error(), "run `almanac repair usage`") || status() != registry.Closed {
		t.Fatalf("%s while rows are lost: %v", status(), err)
	}
	e.killed() // repairs
	e.derived("usage")
	eventually(t, time.Minute, func() error {
		if err := j.Round(t.Context()); err != nil {
			return err
		}
		if now := status(); now != registry.Dropped {
			return fmt.Errorf("not yet dropped: %s", now)
		}
		return nil
	})
	e.lifeBills("repaired and dropped", "usage", diffs, sameName)
}
