package integration

import (
	"fmt"
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

// Rows of a meter stay past their time while copies of them stand in a shard that is not looked
// through, as after a repair: found later, a copy would count beside the sums that stay.
func TestMeterKeptForItsCopies(t *testing.T) {
	t.Parallel()
	topic := dozensOf(t, kinds.Meter, "usage")
	e := start(t, topic)
	e.router()
	early := func() time.Time { return lifeMonth }
	e.sink(func(c *sinkConfig) { c.Retention.Now = early })
	stop := e.rollups()
	const diffs = 12
	var first, again []meter.Diff
	for n := range diffs {
		d := meter.Diff{Meter: "bytes", Provider: "p", Space: "s", Cause: fmt.Sprint("c-", n), Delta: 1, Customer: customer(0), Time: lifeMonth.Add(time.Duration(n) * time.Hour)}
		first = append(first, d)
		d.Time = d.Time.AddDate(0, 1, 0)
		again = append(again, d)
	}
	e.frames("usage", first)
	e.frames("usage", again)
	e.settledUsage("usage")
	e.derived("usage")
	bill := func(when string) {
		t.Helper()
		r, err := query.New(e.connect(), e.reg, e.db)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := usage.New(r).Report(t.Context(), usage.Request{Topic: "usage", From: lifeMonth, To: lifeMonth.AddDate(0, 2, 0), GroupBy: usage.ByCustomer})
		if err != nil || len(rep.Bills) != 1 || fmt.Sprint(rep.Bills[0].SizeEnd) != fmt.Sprint(diffs) {
			t.Fatalf("%s: %+v, %v; want the size %d", when, rep, err, diffs)
		}
	}
	bill("derived")

	stop()
	for _, s := range e.shards("usage") {
		if s.Month != schemas.MonthOf(lifeMonth.UnixNano()) {
			if err := e.db.DropDerived(t.Context(), s.Ref(), e.reg.Dropped("usage")); err != nil {
				t.Fatal(err)
			}
		}
	}
	bill("copies are not known")
	// A shard stays on its first day; of the copies some days more are kept.
	tomorrow := time.Now().Add(25 * time.Hour)
	late := func() time.Time { return tomorrow }
	topic.KeepDays = 10 + int(tomorrow.Sub(lifeMonth.AddDate(0, 1, 0))/(24*time.Hour))
	e.apply(topic)
	nc := e.connect()
	j, err := retention.New(t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.db, Now: late})
	if err != nil {
		t.Fatal(err)
	}
	// past are the shards that are past their time.
	past := func(status registry.Status) error {
		if err := j.Round(t.Context()); err != nil {
			return err
		}
		for _, s := range e.shards("usage") {
			if s.Month == schemas.MonthOf(lifeMonth.UnixNano()) && s.Status != status {
				if status == registry.Closed && s.Gone() {
					t.Fatalf("dropped before its copies were known: %s", describe(e.shards("usage")))
				}
				return fmt.Errorf("not yet %s: %s", status, describe(e.shards("usage")))
			}
		}
		return nil
	}
	eventually(t, time.Minute, func() error { return past(registry.Closed) })
	if err := past(registry.Closed); err != nil {
		t.Fatal(err)
	}
	bill("past its time")
	e.rollups()
	eventually(t, time.Minute, func() error { return past(registry.Dropped) })
	bill("dropped")
	e.derived("usage")
	bill("dropped and derived")
}
