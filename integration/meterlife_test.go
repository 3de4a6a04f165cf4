package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// lifeMonth is the month of the diffs of lifeDiffs.
var lifeMonth = time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)

// lifeDiffs are diffs of three customers, each two or three times with other times, shuffled by
// a seed; first is the number of the first. Of copies the one with the least time counts.
func lifeDiffs(first, count int, seed uint64) (out []meter.Diff) {
	for n := first; n < first+count; n++ {
		for again := range 2 + n%2 {
			out = append(out, meter.Diff{Meter: "bytes", Provider: "p", Space: fmt.Sprint("s-", n%5), Cause: fmt.Sprint("c-", n), Delta: int64(1 + n), Customer: customer(n % 3),
				Time: lifeMonth.Add(time.Duration(n)*time.Hour + time.Duration(again)*time.Minute)})
		}
	}
	rand.New(rand.NewPCG(seed, seed)).Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// frames sends diffs in frames of a dozen.
func (e *env) frames(topic string, all []meter.Diff) {
	e.t.Helper()
	for some := range slices.Chunk(all, 12) {
		e.diffs(topic, some...)
	}
}

// lifeBills holds the bills of a topic with so many diffs to what these come to. as gives the name
// that a customer has now.
func (e *env) lifeBills(when, topic string, diffs int, as func(customer string) string) {
	e.t.Helper()
	r, err := query.New(e.connect(), e.reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	to := lifeMonth.AddDate(0, 1, 0)
	type sum struct{ size, usage, causes int64 }
	want := map[string]sum{}
	for n := range diffs {
		at := lifeMonth.Add(time.Duration(n) * time.Hour)
		s := want[as(customer(n%3))]
		want[as(customer(n%3))] = sum{s.size + int64(1+n), s.usage + int64(1+n)*(to.UnixMilli()-at.UnixMilli()), s.causes + 1}
	}
	for _, byCause := range []bool{false, true} {
		rep, err := usage.New(r).Report(e.t.Context(), usage.Request{Topic: topic, From: lifeMonth, To: to, GroupBy: usage.ByCustomer, ByCause: byCause})
		if err != nil {
			e.t.Fatalf("%s: %v", when, err)
		}
		for _, b := range rep.Bills {
			w := want[b.Customer]
			if got, want := fmt.Sprint(b.SizeEnd, " ", b.Usage, " ", b.Causes), fmt.Sprint(w.size, " ", w.usage, " ", w.causes); got != want {
				e.t.Errorf("%s, by cause %t: %q has %s, want %s", when, byCause, b.Customer, got, want)
			}
		}
		if len(rep.Bills) != len(want) {
			e.t.Errorf("%s, by cause %t: %d bills, want %d", when, byCause, len(rep.Bills), len(want))
		}
	}
}

func sameName(customer string) string { return customer }

// Bills are the same after a partition was lost and repaired by repairs that are killed at every
// point, and after a rebuild; and when names of customers are cleared, by janitors that die at
// every point, their diffs are those of the customer without a name.
func TestMeterThroughDamage(t *testing.T) {
	t.Parallel()
	topic := dozensOf(t, kinds.Meter, "usage")
	e := start(t, topic)
	var clock atomic.Int64
	clock.Store(time.Now().UnixNano())
	e.router()
	injected := func(c *sinkConfig) { c.Retention.Now = func() time.Time { return time.Unix(0, clock.Load()) } }
	stopSink := e.sink(injected)
	e.rollups()
	const diffs = 30
	all := lifeDiffs(0, diffs, 5)
	e.frames("usage", all)
	e.finalUsage("usage")
	e.derived("usage")
	e.lifeBills("derived", "usage", diffs, sameName)

	closed := e.closed("usage", time.Minute)
	e.exec("ALTER TABLE %s DROP PARTITION ID '%s'", e.table("usage"), schemas.PartitionID(closed[0].Month, closed[0].ID))
	e.killed()
	e.repaired(uint64(len(all)))
	e.lifeBills("repaired", "usage", diffs, sameName)
	e.derived("usage")
	e.lifeBills("repaired and derived", "usage", diffs, sameName)
	// A copy of rows, as a restored backup leaves it, is taken out by a repair.
	e.exec("INSERT INTO %[1]s SELECT * FROM %[1]s WHERE shard = %[2]d", e.table("usage"), uint64(closed[0].ID))
	e.named("rows, ClickHouse has")
	e.killed()
	e.repaired(uint64(len(all)))
	e.lifeBills("copies taken out", "usage", diffs, sameName)
	if _, err := rebuild.Derived(t.Context(), rebuild.Config{Registry: e.reg, DB: e.db}, "usage", false); err != nil {
		t.Fatal(err)
	}
	e.lifeBills("not derived", "usage", diffs, sameName)
	e.derived("usage")
	e.lifeBills("derived again", "usage", diffs, sameName)

	stopSink()
	topic.Anonymise = schemas.Anonymise{AfterDays: 7, Fields: []string{schemas.ColUserID}}
	e.apply(topic)
	clock.Store(time.Now().Add(25 * time.Hour).UnixNano()) // a shard is left alone on its first day
	for _, point := range []string{"janitor.before-clear", "janitor.after-clear", "janitor.before-anonymised"} {
		e.janitorKilled(point, func() time.Time { return time.Unix(0, clock.Load()) })
	}
	e.sink(injected)
	eventually(t, time.Minute, func() error {
		for _, s := range e.shards("usage") {
			if s.AnonymisedAt.IsZero() {
				return fmt.Errorf("not yet anonymised: %s", describe(e.shards("usage")))
			}
		}
		return nil
	})
	unnamed := func(string) string { return "" }
	e.lifeBills("anonymised", "usage", diffs, unnamed)
	e.derived("usage")
	e.lifeBills("anonymised and derived", "usage", diffs, unnamed)
	if n := e.count("SELECT count() FROM %s WHERE user_id != ''", sql.QuotedTable(e.srv.Database, "usage.sums")); n != 0 {
		t.Errorf("%d rows of sums name a customer", n)
	}
}

// janitorKilled has a janitor do what is due until the point ends it. It must come to it.
func (e *env) janitorKilled(point string, now func() time.Time) {
	e.t.Helper()
	nc := e.connect()
	j, err := retention.New(e.t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.sinkDB, Now: now, Crash: func(p string) {
		if p == point {
			panic(killed(p))
		}
	}})
	if err != nil {
		e.t.Fatal(err)
	}
	eventually(e.t, 20*time.Second, func() error {
		if err := untilKilled(func() error { return j.Round(e.t.Context()) }); !errors.Is(err, errKilled) {
			return fmt.Errorf("the janitor did not come to %s: %w", point, err)
		}
		return nil
	})
}

// ClickHouse is restored as a whole, and what is derived with it: bills are those of what was
// accepted once the sink stored the rest again, derived or not.
func TestMeterPutBack(t *testing.T) {
	t.Parallel()
	o := startOwnEngine(t, dozensOf(t, kinds.Meter, "usage"))
	o.router()
	o.sink()
	o.rollups()
	before, after := lifeDiffs(0, 20, 1), append(lifeDiffs(20, 20, 2), lifeDiffs(0, 20, 3)...) // with copies of what was there
	o.frames("usage", before)
	o.finalUsage("usage")
	o.derived("usage")
	older := o.copied()
	o.frames("usage", after)
	o.stored("usage", uint64(len(before)+len(after)), time.Minute) // ClickHouse starts again
	o.derived("usage")
	o.lifeBills("before", "usage", 40, sameName)
	o.putBack(older)
	o.stored("usage", uint64(len(before)+len(after)), time.Minute)
	o.finalUsage("usage")
	o.lifeBills("restored", "usage", 40, sameName)
	o.derived("usage")
	o.lifeBills("restored and derived", "usage", 40, sameName)
	o.verify(uint64(len(before) + len(after)))
}

// A topic that the registry lost comes back as its kind, with what identity and sums need, and
// bills are the same.
func TestLostMeter(t *testing.T) {
	t.Parallel()
	topic := dozensOf(t, kinds.Meter, "usage")
	topic.OnceWithin = 30 * 24 * time.Hour
	e := start(t, topic)
	stopRouter, stopSink, stopRollups := e.router(), e.sink(), e.rollups()
	all := lifeDiffs(0, 20, 4)
	e.frames("usage", all)
	e.finalUsage("usage")
	e.derived("usage")
	stopRouter()
	stopSink()
	stopRollups()
	e.purgeKey(schemas.TopicKey("usage"))
	e.named("topic usage: the registry does not know it")
	e.killed()
	e.repaired(uint64(len(all)))
	back, err := e.reg.Topic(t.Context(), "usage")
	if err != nil || back.Kind != kinds.Meter || back.OnceWithin != topic.OnceWithin || !slices.Equal(back.Fields, topic.Fields) {
		t.Fatalf("it came back as %+v, %v", back, err)
	}
	e.lifeBills("back", "usage", 20, sameName)
	e.router()
	e.sink()
	e.rollups()
	e.frames("usage", append(lifeDiffs(20, 5, 4), all...))
	e.finalUsage("usage")
	e.derived("usage")
	e.lifeBills("goes on", "usage", 25, sameName)
}

// A replay goes into a topic of the same kind, or into a log with the same columns.
func TestReplayIntoKinds(t *testing.T) {
	t.Parallel()
	columns := kinds.Meter.Spec().Fields
	wider := meterTopic(t, "wider")
	wider.Fields = append(slices.Clone(wider.Fields), schemas.Field{Name: "region", Type: schemas.TypeString, Since: 1})
	e := running(t, meterTopic(t, "usage"), meterTopic(t, "copy"), wider, newTopic("bare"), newTopic("rows", columns...), dozensOf(t, kinds.Audit, "trail"), dozensOf(t, kinds.Metric, "points"))
	all := lifeDiffs(0, 5, 6)
	e.frames("usage", all)
	e.finalUsage("usage")
	for _, c := range []struct{ from, into, refused string }{
		{"usage", "copy", ""},
		{"usage", "wider", ""},
		{"usage", "rows", ""},
		{"usage", "bare", "replay into a topic of kind meter, or into one of kind log with the same fields"},
		{"usage", "trail", "of kind audit"},
		{"usage", "points", "of kind metric"},
		{"rows", "usage", "of kind meter"},
		{"rows", "bare", ""},
	} {
		j, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: c.from, Into: c.into})
		if c.refused != "" {
			if !errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s into %s: %v, want %q", c.from, c.into, err, c.refused)
			}
			continue
		}
		if err == nil {
			_, err = j.Run(t.Context(), nil, replay.Pace{})
		}
		if err != nil {
			t.Errorf("%s into %s: %v", c.from, c.into, err)
			continue
		}
		e.finalUsage(c.into)
		if n := e.count("SELECT count() FROM %s", e.table(c.into)); n != uint64(len(all)) {
			t.Errorf("%s into %s: %d rows, want %d", c.from, c.into, n, len(all))
		}
	}
}
