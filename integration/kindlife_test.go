package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/maintenance/seals"
	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// lifeEnv is how many points a round of TestMetricThroughDamage has, and how many changes TestTrailThroughDamage:
// 200 take some minutes.
const lifeEnv = "ALMANAC_KIND_LIFE"

func lifeSize(short int) int {
	if n, err := strconv.Atoi(os.Getenv(lifeEnv)); err == nil && n >= short {
		return n
	}
	return short
}

// dozensOf is a topic of a kind with one lane, whose shards are left at twelve rows.
func dozensOf(t *testing.T, kind schemas.Kind, name string) schemas.Topic {
	t.Helper()
	topic, err := schemas.Topic{Name: name, Kind: kind, Lanes: 1, Rotate: schemas.Rotation{Rows: 12}}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// Points that come three times, shuffled, some corrected, mean the same while what is derived
// ends at every crash point, once all is derived, after a partition and the list of series were
// lost and repaired by repairs that are killed, after a rebuild, and replayed twice.
func TestMetricThroughDamage(t *testing.T) {
	t.Parallel()
	e := start(t, dozensOf(t, kinds.Metric, "cpu"), dozensOf(t, kinds.Metric, "copy"))
	stopRouter, stopSink := e.router(), e.sink()
	from := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	rnd, each := rand.New(rand.NewPCG(3, 3)), lifeSize(8)
	value := map[string]map[time.Time]float64{}
	accepted := uint64(0)
	p := e.producer("cpu")
	send := func(points ...metric.Point) {
		t.Helper()
		for i := range points {
			ev, err := points[i].Event()
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Submit(t.Context(), ev, nil); err != nil {
				t.Fatal(err)
			}
			host := points[i].Labels[0].Text()
			if value[host] == nil {
				value[host] = map[time.Time]float64{}
			}
			value[host][points[i].Time] = points[i].Value
		}
		e.flush(p)
		accepted += uint64(len(points))
	}
	point := func(n int, correction float64) metric.Point {
		return metric.Point{Name: "cpu", Value: float64(n) + correction, Points: metric.Gauge, Time: from.Add(time.Duration(n*7) * time.Second),
			Labels: []schemas.Attr{schemas.String("host", fmt.Sprint("h-", n%5))}}
	}
	reader, err := query.New(e.connect(), e.reg, e.db)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when, topic string) {
		t.Helper()
		e.finalUsage(topic)
		a, err := series.New(reader).Align(t.Context(), series.Request{Topic: topic, Metric: "cpu", From: from.Add(-time.Minute), To: from.Add(time.Hour)})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		n, hosts := 0, map[string]bool{}
		for _, g := range a.Groups {
			hosts[g.Labels["host"]] = true
			for _, p := range g.Points {
				if want, ok := value[g.Labels["host"]][p.Time]; !ok || float64(*p.Value) != want {
					t.Errorf("%s: %v at %s is %g, want %g", when, g.Labels, p.Time, float64(*p.Value), want)
				}
				n++
			}
		}
		want := 0
		for _, points := range value {
			want += len(points)
		}
		if n != want || len(hosts) != len(value) || a.Series != int64(len(value)) {
			t.Errorf("%s: %d points of %d series, want %d of %d", when, n, a.Series, want, len(value))
		}
	}
	for round, at := range []string{"rollups.before-examine", "rollups.after-examine", "rollups.before-list", "rollups.after-list"} {
		var points []metric.Point
		for n := each * round; n < each*(round+1); n++ {
			points = append(points, point(n, 0), point(n, 0), point(n, 0))
		}
		rnd.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
		send(points...)
		send(point(each*round, 0.5), point(max(0, each*round-each/2), 0.25)) // the second one late
		e.finalUsage("cpu")
		e.rollupsKilled(at)
		check(at, "cpu")
		if round == 1 {
			stopRouter()
			stopSink()
			stopRouter, stopSink = e.router(), e.sink()
		}
	}
	stopRollups := e.rollups()
	e.examined("cpu")
	check("derived", "cpu")

	closed := e.closed("cpu", time.Minute)
	e.exec("ALTER TABLE %s DROP PARTITION ID '%s'", e.table("cpu"), schemas.PartitionID(closed[0].Month, closed[0].ID))
	e.exec("TRUNCATE TABLE %s", e.table("cpu.series"))
	e.killed()
	e.examined("cpu")
	e.repaired(accepted)
	check("repaired", "cpu")

	if _, err := rebuild.Run(t.Context(), rebuild.Config{NATS: e.connect(), Registry: e.reg, DB: e.db}, "cpu", true); err != nil {
		t.Fatal(err)
	}
	check("rebuilt", "cpu")
	e.examined("cpu")
	check("rebuilt and derived", "cpu")
	e.replayedTwice("cpu", "copy")
	check("replayed", "copy")
	stopRollups()
}

// rollupsKilled lets rollups do all there is to do, until the point ends them. They must come
// to it.
func (e *env) rollupsKilled(point string) {
	e.t.Helper()
	u, err := rollups.New(rollups.Config{Registry: e.reg, DB: e.sinkDB, BatchRows: 50, Crash: func(p string) {
		if p == point {
			panic(killed(p))
		}
	}, Hooks: rollups.Hooks{Fault: func(ref schemas.ShardRef, err error) { e.logf("rollups %s: %v", ref, err) }}})
	if err != nil {
		e.t.Fatal(err)
	}
	eventually(e.t, 20*time.Second, func() error {
		err := untilKilled(func() error {
			for {
				if more, err := u.Round(e.t.Context()); err != nil || !more {
					return err
				}
			}
		})
		if !errors.Is(err, errKilled) {
			return fmt.Errorf("rollups did not come to %s: %w", point, err)
		}
		return nil
	})
}

// examined waits until all of a topic is examined, and its series are listed.
func (e *env) examined(name string) {
	e.t.Helper()
	e.eachDerived(name, func(topic *schemas.Topic, s derived.Progress) string {
		if s.Examined < s.Stored.Head || topic.HasSeries() && s.Series < s.Stored.Head {
			return fmt.Sprintf("rows up to %d, examined up to %d, listed up to %d", s.Stored.Head, s.Examined, s.Series)
		}
		return ""
	})
}

// replayedTwice replays a topic into another one, twice.
func (e *env) replayedTwice(from, into string) {
	e.t.Helper()
	for range 2 {
		j, err := e.replayer(nil).Begin(e.t.Context(), replay.Request{Topic: from, Into: into})
		if err == nil {
			_, err = j.Run(e.t.Context(), nil, replay.Pace{})
		}
		if err != nil {
			e.t.Fatal(err)
		}
	}
}

// Changes that are announced twice and concluded, and the seals over them: a sealer that ends at
// every crash point leaves one chain, and both mean the same after a lost partition was repaired
// by repairs that are killed, and after a rebuild. A replay twice has each change once.
func TestTrailThroughDamage(t *testing.T) {
	t.Parallel()
	e := start(t, dozensOf(t, kinds.Audit, "trail"), dozensOf(t, kinds.Audit, "copy"))
	e.router()
	e.sink()
	e.rollups()
	changes := lifeSize(15)
	p := e.producer("trail", func(c *producer.Config) { c.Policy = producer.Block })
	w := audit.New(p)
	for i := range changes {
		c := audit.Change{Request: fmt.Sprint("r-", i), Scope: "s", Service: "iam", Type: "role", Resource: fmt.Sprint("roles/", i%7), Actor: "u-1",
			Before: map[string]int{"n": i}, After: map[string]int{"n": i + 1}, Time: time.Date(2026, 2, 1, 12, i, 0, 0, time.UTC)}
		for _, step := range []func() error{
			func() error { return w.Before(t.Context(), c) }, func() error { return w.Before(t.Context(), c) },
			func() error { return w.After(t.Context(), c, audit.Committed) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	e.finalUsage("trail")
	closed := e.closed("trail", time.Minute)

	before := e.sealed("seals.before-add")
	after := e.sealed("seals.after-add")
	kept := e.sealed("")
	if len(before) != 0 || len(after) != 1 || len(kept) != len(closed)-1 && len(kept) != len(closed) {
		t.Errorf("%d, %d and %d seals of %d shards", len(before), len(after), len(kept), len(closed))
	}
	for i := range kept {
		prev := (*schemas.Seal)(nil)
		if i > 0 {
			prev = &kept[i-1]
		}
		if err := kept[i].Follows(prev); err != nil {
			t.Error(err)
		}
	}
	if len(after) == 1 && after[0].Hash != kept[0].Hash {
		t.Errorf("the seal %+v became %+v", after[0], kept[0])
	}
	if again := e.sealed(""); len(again) != len(kept) {
		t.Errorf("%d seals, then %d", len(kept), len(again))
	}

	reader, err := query.New(e.connect(), e.reg, e.db)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when, topic string) {
		t.Helper()
		page, err := trail.New(reader).Page(t.Context(), trail.Request{Topic: topic, Scopes: []string{"s"}, Actors: []string{"u-1"}, Limit: max(100, changes)})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		for i, c := range page.Entries {
			if n := changes - 1 - i; c.RequestID != fmt.Sprint("r-", n) || c.State != kinds.StateCommitted || c.Events != 2 || string(c.Before) != fmt.Sprintf(`{"n":%d}`, n) {
				t.Errorf("%s: %+v", when, c)
			}
		}
		if len(page.Entries) != changes {
			t.Errorf("%s: %d changes, want %d", when, len(page.Entries), changes)
		}
	}
	holds := func(when, problem string) {
		t.Helper()
		reports, err := seals.Check(t.Context(), e.reg, e.db, append([]schemas.Seal(nil), kept...))
		if err != nil || len(reports) != 1 {
			t.Fatalf("%s: %v %v", when, reports, err)
		}
		if text := strings.Join(reports[0].Problems, "\n"); text == "" != (problem == "") || !strings.Contains(text, problem) {
			t.Errorf("%s: problems %q, want %q", when, text, problem)
		}
	}
	check("at once", "trail")
	holds("at once", "")
	victim := kept[len(kept)-1].Ref()
	e.exec("ALTER TABLE %s DROP PARTITION ID '%s'", e.table("trail"), schemas.PartitionID(victim.Month, victim.ID))
	holds("a partition lost", victim.String())
	e.killed()
	e.examined("trail")
	e.repaired(uint64(3 * changes))
	check("repaired", "trail")
	holds("repaired", "")
	if _, err := rebuild.Run(t.Context(), rebuild.Config{NATS: e.connect(), Registry: e.reg, DB: e.db}, "trail", true); err != nil {
		t.Fatal(err)
	}
	check("rebuilt", "trail")
	holds("rebuilt", "")
	if all := e.sealed(""); len(all) < len(kept) || all[len(kept)-1].Hash != kept[len(kept)-1].Hash {
		t.Errorf("%d seals after all, %d before", len(all), len(kept))
	}
	e.replayedTwice("trail", "copy")
	e.finalUsage("copy")
	check("replayed", "copy")
}

// sealed makes the seals that are due, until the point ends the sealer, and returns the chain of
// the topic trail.
func (e *env) sealed(point string) []schemas.Seal {
	e.t.Helper()
	s, err := seals.New(seals.Config{Registry: e.reg, DB: e.sinkDB, Crash: func(p string) {
		if p == point {
			panic(killed(p))
		}
	}, Hooks: seals.Hooks{Fault: func(ref schemas.ShardRef, err error) { e.logf("sealer %s: %v", ref, err) }}})
	if err != nil {
		e.t.Fatal(err)
	}
	eventually(e.t, 20*time.Second, func() error {
		if err := untilKilled(func() error { return s.Round(e.t.Context()) }); point != "" && !errors.Is(err, errKilled) || point == "" && err != nil {
			return fmt.Errorf("the sealer until %q: %w", point, err)
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	all, err := e.reg.Seals(ctx, "trail")
	if err != nil {
		e.t.Fatal(err)
	}
	return all
}
