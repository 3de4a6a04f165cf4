package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Retention dropped the events that count, and the shard of their copies loses rows, which a sink
// stores again: the copies do not count.
func TestMeterLostCopies(t *testing.T) {
	t.Parallel()
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
			first, again := twice(diffs)
			e.frames("usage", first)
			if how == "tail" { // another shard of the copies' month, which stays
				more := slices.Clone(again)
				for n := range more {
					more[n].Cause = fmt.Sprint("d-", n)
				}
				e.frames("usage", more)
			}
			e.finalUsage("usage")
			if how == "part" { // one shard, two inserts, of which the second is lost
				e.frames("usage", again[:diffs/2])
				e.finalUsage("usage")
				e.frames("usage", again[diffs/2:])
			} else {
				e.frames("usage", again)
			}
			e.finalUsage("usage")
			e.derived("usage")
			want := diffs
			if how == "tail" {
				want *= 2
			}
			e.usageSize("derived", want)
			j := e.tomorrow(topic, lifeMonth.AddDate(0, 1, 0))
			eventually(t, time.Minute, func() error { return e.retained(j, registry.Dropped) })
			e.usageSize("dropped", want)
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
			e.finalUsage("usage")
			e.rollups()
			e.derived("usage")
			e.usageSize("stored again", want)
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
	e.finalUsage("usage")
	e.derived("usage")
	e.lifeBills("derived", "usage", diffs, sameName)
	closed := e.closed("usage", time.Minute)[0]
	if closed.Status != registry.Closed {
		t.Fatalf("%+v", closed)
	}
	e.exec("ALTER TABLE %s DELETE WHERE shard = %d AND cityHash64(id) %% 2 = 0 SETTINGS mutations_sync = 2", e.table("usage"), uint64(closed.ID))
	e.derived("usage") // of the rows that there are
	j := e.tomorrow(topic, time.Now())
	status := func() registry.Status {
		t.Helper()
		s, err := e.reg.Shard(t.Context(), closed.Ref())
		if err != nil {
			t.Fatal(err)
		}
		return s.Status
	}
	if err := j.Round(t.Context()); err == nil || !strings.Contains(err.Error(), "Run `almanac repair usage`") || status() != registry.Closed {
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

// Rows of a meter that are lost after all was seen to be summed, and before they are counted to be dropped, hold retention up: a
// shard that was dropped with none would be taken for one that an erasure emptied.
func TestMeterLosesRowsAsItIsDropped(t *testing.T) {
	t.Parallel()
	topic := dozensOf(t, kinds.Meter, "usage")
	e := start(t, topic)
	e.router()
	stopSink := e.sink(func(c *sinkConfig) { c.Retention.Now = func() time.Time { return lifeMonth } })
	e.rollups()
	e.frames("usage", lifeDiffs(0, 30, 5))
	e.finalUsage("usage")
	e.derived("usage")
	closed := e.closed("usage", time.Minute)[0]
	stopSink()
	lost := false
	j := e.tomorrow(topic, time.Now(), func(c *retention.Config) {
		c.Crash = func(point string) {
			if point == "janitor.derived" && !lost {
				lost = true
				e.exec("TRUNCATE TABLE %s", e.table("usage"))
			}
		}
	})
	err := j.Round(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ClickHouse lost rows") || !lost {
		t.Errorf("rows were lost: %t, and the round says %v", lost, err)
	}
	if s, err := e.reg.Shard(t.Context(), closed.Ref()); err != nil || s.Status != registry.Closed {
		t.Errorf("%+v (%v)", s, err)
	}
}
