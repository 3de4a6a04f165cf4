package integration

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

// Ten thousand diffs over months and spaces, each up to three times, late and in any order,
// through routers, sinks and rollups that end at any moment: the usage is that of the diffs, in
// big integers, while all of it is on its way, when all is derived, and in a second topic into
// which it is replayed twice.
func TestMeterPipeline(t *testing.T) {
	t.Parallel()
	e := start(t, meterTopic(t, "usage"), meterTopic(t, "copy"))
	const causes = 5000
	from, to := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	rnd := rand.New(rand.NewPCG(7, 7))
	var sent []meter.Diff
	want, size := new(big.Int), new(big.Int)
	for n := range causes {
		d := meter.Diff{Meter: "bytes", Provider: "p", Space: fmt.Sprint("s-", n%20), Cause: fmt.Sprint("c-", n), Customer: "u", Delta: rnd.Int64N(1<<53) - 1<<52,
			Time: from.AddDate(0, -1, 0).Add(time.Duration(rnd.Int64N(int64(58 * 24 * time.Hour)))).Truncate(time.Millisecond)}
		sent = append(sent, d)
		for range rnd.IntN(3) { // copies are later, by up to a month
			again := d
			again.Time = d.Time.Add(time.Duration(1 + rnd.Int64N(int64(30*24*time.Hour)))).Truncate(time.Millisecond)
			sent = append(sent, again)
		}
		if !d.Time.Before(to) {
			continue
		}
		delta := big.NewInt(d.Delta)
		size.Add(size, delta)
		want.Add(want, new(big.Int).Mul(delta, big.NewInt(to.UnixMilli()-max(d.Time.UnixMilli(), from.UnixMilli()))))
	}
	rnd.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })

	ctx, stop := context.WithCancel(t.Context())
	var parts sync.WaitGroup
	points := []string{"rollups.before-examine", "rollups.after-examine", "rollups.before-drop", "rollups.before-sum", "rollups.after-sum"}
	for i, part := range []func() func(){
		func() func() { return e.router() },
		func() func() { return e.sink() },
		func() func() { return e.rollupsUntil(points[rand.IntN(len(points))]) },
	} {
		parts.Go(func() {
			for ctx.Err() == nil {
				end := part()
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(200+300*i+rand.IntN(700)) * time.Millisecond):
				}
				end()
			}
		})
	}
	e.diffs("usage", sent[:len(sent)/2]...)
	e.diffs("usage", sent[len(sent)/2:]...)
	stop()
	parts.Wait()
	e.router()
	e.sink()
	e.finalUsage("usage")

	r, err := query.New(e.connect(), e.reg, e.db)
	if err != nil {
		t.Fatal(err)
	}
	u := usage.New(r)
	check := func(when, topic string) {
		t.Helper()
		for _, by := range []usage.GroupBy{usage.Total, usage.ByCustomer, usage.BySpace} {
			rep, err := u.Report(t.Context(), usage.Request{Topic: topic, From: from, To: to, GroupBy: by})
			if err != nil {
				t.Fatal(err)
			}
			gotSize, gotUsage := new(big.Int), new(big.Int)
			for _, b := range rep.Bills {
				for text, sum := range map[string]*big.Int{b.SizeEnd: gotSize, b.Usage: gotUsage} {
					n, ok := new(big.Int).SetString(text, 10)
					if !ok {
						t.Fatalf("%+v", b)
					}
					sum.Add(sum, n)
				}
			}
			if gotSize.Cmp(size) != 0 || gotUsage.Cmp(want) != 0 {
				t.Errorf("%s, by %q: size %s and usage %s, want %s and %s", when, by, gotSize, gotUsage, size, want)
			}
		}
	}
	check("some of it derived", "usage")
	e.rollups()
	e.derived("usage")
	check("derived", "usage")
	for range 2 {
		j, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: "usage", Into: "copy"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := j.Run(t.Context(), nil, replay.Pace{}); err != nil {
			t.Fatal(err)
		}
	}
	e.finalUsage("copy")
	check("replayed", "copy")
	e.derived("copy")
	check("replayed and derived", "copy")
}

// rollupsUntil runs rollups that end at a point, as a killed process does.
func (e *env) rollupsUntil(point string) (stop func()) {
	e.t.Helper()
	u, err := rollups.New(rollups.Config{Registry: e.registry(e.connect()), DB: e.sinkDB, Every: 50 * time.Millisecond, BatchRows: 2000, Crash: func(p string) {
		if p == point {
			panic(killed(p))
		}
	}, Hooks: rollups.Hooks{Fault: func(ref schemas.ShardRef, err error) { e.logf("rollups %s: %v", ref, err) }}})
	if err != nil {
		e.t.Fatal(err)
	}
	return e.background(func(ctx context.Context) error {
		if err := untilKilled(func() error { return u.Run(ctx) }); !errors.Is(err, errKilled) {
			return err
		}
		return nil
	})
}

// derived waits until all of a topic is examined and summed.
func (e *env) derived(name string) {
	e.t.Helper()
	e.eachDerived(name, func(_ *schemas.Topic, s derived.Progress) string { return s.Waits() })
}

// eachDerived waits until of no shard of a topic waits says what is missing.
func (e *env) eachDerived(name string, waits func(*schemas.Topic, derived.Progress) string) {
	e.t.Helper()
	topic, err := e.reg.Topic(e.t.Context(), name)
	if err != nil {
		e.t.Fatal(err)
	}
	eventually(e.t, time.Minute, func() error {
		d, err := derived.Of(e.db).State(e.t.Context(), &topic)
		if err != nil {
			return err
		}
		for ref, s := range d.Shards {
			if why := waits(&topic, s); why != "" {
				return fmt.Errorf("%s: %s", ref, why)
			}
		}
		return nil
	})
}
