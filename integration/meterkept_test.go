package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
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
	first, again := twice(diffs)
	e.frames("usage", first)
	e.frames("usage", again)
	e.finalUsage("usage")
	e.derived("usage")
	e.usageSize("derived", diffs)

	stop()
	for _, s := range e.shards("usage") {
		if s.Month != schemas.MonthOf(lifeMonth.UnixNano()) {
			if err := derived.Of(e.db).Drop(t.Context(), s.Ref(), e.reg.DerivedDropper("usage")); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.usageSize("copies are not known", diffs)
	j := e.tomorrow(topic, lifeMonth.AddDate(0, 1, 0))
	eventually(t, time.Minute, func() error {
		err := e.retained(j, registry.Closed)
		if slices.ContainsFunc(e.shards("usage"), func(s registry.Shard) bool { return s.Gone() }) {
			t.Fatalf("dropped before its copies were known: %v", err)
		}
		return err
	})
	if err := e.retained(j, registry.Closed); err != nil {
		t.Fatal(err)
	}
	e.usageSize("past its time", diffs)
	e.rollups()
	eventually(t, time.Minute, func() error { return e.retained(j, registry.Dropped) })
	e.usageSize("dropped", diffs)
	e.derived("usage")
	e.usageSize("dropped and derived", diffs)
}

// usageSize holds the size of the only customer of topic usage over two months to what it must be.
func (e *env) usageSize(when string, want int) {
	e.t.Helper()
	r, err := query.New(e.connect(), e.reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	rep, err := usage.New(r).Report(e.t.Context(), usage.Request{Topic: "usage", From: lifeMonth, To: lifeMonth.AddDate(0, 2, 0), GroupBy: usage.ByCustomer})
	if err != nil || len(rep.Bills) != 1 || fmt.Sprint(rep.Bills[0].SizeEnd) != fmt.Sprint(want) {
		e.t.Fatalf("%s: %+v, %v; want the size %d", when, rep, err, want)
	}
}

// twice are diffs of one customer in lifeMonth, and their copies a month later.
func twice(diffs int) (first, again []meter.Diff) {
	for n := range diffs {
		d := meter.Diff{Meter: "bytes", Provider: "p", Space: "s", Cause: fmt.Sprint("c-", n), Delta: 1, Customer: customer(0), Time: lifeMonth.Add(time.Duration(n) * time.Hour)}
		first = append(first, d)
		d.Time = d.Time.AddDate(0, 1, 0)
		again = append(again, d)
	}
	return first, again
}

// tomorrow is a janitor of the day after: a shard stays on its first day. With keepFrom the topic
// keeps what came some days before that time, and nothing older.
func (e *env) tomorrow(topic schemas.Topic, keepFrom time.Time, change ...func(*retention.Config)) *retention.Janitor {
	e.t.Helper()
	tomorrow := time.Now().Add(25 * time.Hour)
	topic.KeepDays = 10 + int(tomorrow.Sub(keepFrom)/(24*time.Hour)) // a router takes no event that is past its time
	e.apply(topic)
	nc := e.connect()
	cfg := retention.Config{Registry: e.registry(nc), DB: e.sinkDB, Now: func() time.Time { return tomorrow }}
	for _, c := range change {
		c(&cfg)
	}
	j, err := retention.New(e.t.Context(), nc, cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return j
}

// retained does a janitor's round, and says which shard of topic usage in lifeMonth is not in a state.
func (e *env) retained(j *retention.Janitor, status registry.Status) error {
	if err := j.Round(e.t.Context()); err != nil {
		return err
	}
	for _, s := range e.shards("usage") {
		if s.Month == schemas.MonthOf(lifeMonth.UnixNano()) && s.Status != status {
			return fmt.Errorf("%s is %s, not %s", s.Name(), s.Status, status)
		}
	}
	return nil
}
