package usage

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// roundsEnv is how many plans TestAnyOrder runs.
const roundsEnv = "ALMANAC_USAGE_ROUNDS"

// step is one thing that happens to the tables.
type step struct {
	do   string // insert, examine, sum, round, crash, lose-sums, lose-repeats, read
	rows []row
	pick int // of the shards there are
	from int // of a read: days after the beginning, with a part of one
	days int
}

var months = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// plan is any order of arrival, duplication, splitting in inserts, lateness and derivation.
var plan = rapid.Custom(func(t *rapid.T) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		return step{
			do: rapid.SampledFrom([]string{"insert", "insert", "insert", "examine", "sum", "round", "crash", "lose-sums", "lose-repeats", "read", "read"}).Draw(t, "do"),
			rows: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) row {
				cause := rapid.IntRange(0, 30).Draw(t, "cause")
				return row{
					meter: "bytes", provider: "p", space: fmt.Sprint("s", cause%3), cause: fmt.Sprint("c", cause), customer: fmt.Sprint("u", cause%2),
					delta: rapid.Int64Range(-1<<53, 1<<53).Draw(t, "delta"),
					ms:    months.UnixMilli() + rapid.Int64Range(0, 110*dayMs).Draw(t, "ms"), shard: rapid.Uint64Range(0, 1).Draw(t, "shard"),
				}
			}), 1, 20).Draw(t, "rows"),
			pick: rapid.IntRange(0, 20).Draw(t, "pick"), from: rapid.IntRange(0, 80*4).Draw(t, "from"), days: rapid.IntRange(1, 60*4).Draw(t, "days"),
		}
	}), 12, 30).Draw(t, "steps")
})

// Whatever happens to the tables, in whatever order and with however many lanes, reports are the integral of the diffs of
// which the earliest copy counts, in big integers.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv(roundsEnv)); err == nil {
		rounds = n
	}
	for seed := range rounds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			topic := schemas.Topic{Name: "usage", Kind: kinds.Meter, Lanes: []int{1, 16, 4}[seed%3]}
			if seed%2 == 1 {
				topic.OnceWithin = 10 * 24 * time.Hour
			}
			r := newRigOf(t, topic)
			steps := append(plan.Example(seed), step{do: "read", days: 400}, step{do: "round"}, step{do: "read", days: 400}, step{do: "read", from: 7, days: 160})
			for i := range steps {
				r.step(&steps[i])
				if t.Failed() {
					t.Fatalf("after step %d of seed %d: %s", i, seed, steps[i].do)
				}
			}
		})
	}
}

func (r *rig) step(s *step) {
	r.T.Helper()
	refs := r.Shards()
	switch {
	case s.do == "insert":
		in(&r.Topic, s.rows)
		r.insert(s.rows...)
		r.all = append(r.all, s.rows...)
	case len(refs) == 0:
	case s.do == "examine":
		r.Examine(refs[s.pick%len(refs)])
	case s.do == "sum":
		r.sumExamined(refs[s.pick%len(refs)])
	case s.do == "round":
		r.round("")
	case s.do == "crash":
		r.round(rollupsPoints[s.pick%len(rollupsPoints)])
	case s.do == "lose-sums":
		r.Exec("ALTER TABLE " + sql.QuotedTable(r.DB.Database, "usage.sums") + fmt.Sprintf(" DROP PARTITION (%d, %d)", uint32(refs[s.pick%len(refs)].Month), uint64(refs[s.pick%len(refs)].ID)))
	case s.do == "lose-repeats":
		if err := derived.Of(r.DB).Drop(r.T.Context(), refs[s.pick%len(refs)], r.Reg.DerivedDropper("usage")); err != nil {
			r.T.Fatal(err)
		}
	case s.do == "read":
		from := months.Add(time.Duration(s.from) * 6 * time.Hour)
		r.compare(from, from.Add(time.Duration(s.days)*6*time.Hour))
	}
}

// sumExamined adds to a shard's sums what was examined.
func (r *rig) sumExamined(ref schemas.ShardRef) {
	r.T.Helper()
	examined, err := derived.Of(r.DB).Examined(r.T.Context(), "usage")
	if err != nil {
		r.T.Fatal(err)
	}
	summed, err := derived.Of(r.DB).Summed(r.T.Context(), "usage")
	if err == nil && summed[ref.ID] < examined[ref.ID] {
		err = derived.Of(r.DB).FillSums(r.T.Context(), &r.Topic, ref, summed[ref.ID], examined[ref.ID], 0)
	}
	if err != nil {
		r.T.Fatal(err)
	}
}

// rollupsPoints are the points at which a round may end.
var rollupsPoints = []string{"rollups.before-examine", "rollups.after-examine", "rollups.before-drop", "rollups.before-sum", "rollups.after-sum"}

// round runs the rollups until nothing is left to do, or until they come to a point at which
// the process ends.
func (r *rig) round(point string) (dropped []string) {
	r.T.Helper()
	u, err := rollups.New(rollups.Config{Registry: r.Reg, DB: r.DB, BatchRows: 15, Crash: func(p string) {
		if p == point {
			panic(point)
		}
	}, Hooks: rollups.Hooks{
		Fault:   func(ref schemas.ShardRef, err error) { r.T.Errorf("%s: %v", ref, err) },
		Dropped: func(ref schemas.ShardRef, why string) { dropped = append(dropped, ref.String()+" "+why) },
	}})
	if err != nil {
		r.T.Fatal(err)
	}
	defer func() {
		if p := recover(); p != nil && (point == "" || p != any(point)) {
			panic(p)
		}
	}()
	for more := true; more; {
		if more, err = u.Round(r.T.Context()); err != nil {
			r.T.Fatal(err)
		}
	}
	return dropped
}

// counting are the rows that count: of each cause the one with the least time, and of those
// the one stored first; with once_within also each that comes longer than that after the one
// before it.
func (r *rig) counting() (out []row) {
	byCause := map[string][]row{}
	for _, w := range r.all {
		byCause[w.cause] = append(byCause[w.cause], w)
	}
	for _, same := range byCause {
		slices.SortStableFunc(same, func(a, b row) int { return cmp.Compare(a.ms, b.ms) })
		for i, w := range same {
			if i == 0 || r.Topic.OnceWithin > 0 && w.ms-same[i-1].ms > r.Topic.OnceWithin.Milliseconds() {
				out = append(out, w)
			}
		}
	}
	return out
}

// compare holds reports of a range to the definition.
func (r *rig) compare(from, to time.Time) {
	r.T.Helper()
	want := map[string][]diff{}
	for _, w := range r.counting() {
		want[w.space] = append(want[w.space], diff{w.ms, w.delta})
		want["all"] = append(want["all"], diff{w.ms, w.delta})
		want[w.space+" of "+w.customer] = append(want[w.space+" of "+w.customer], diff{w.ms, w.delta})
	}
	same := func(name string, b *Bill) {
		r.T.Helper()
		n := integral(want[name], from.UnixMilli(), to.UnixMilli())
		if b.SizeStart != n.before.String() || b.SizeEnd != n.end.String() || b.Usage != n.usage.String() || b.Causes != n.causes {
			r.T.Errorf("%s from %s to %s: %+v, want %s to %s, usage %s, %d causes", name, from, to, b, &n.before, &n.end, &n.usage, n.causes)
		}
	}
	found := map[string]bool{}
	for _, by := range []GroupBy{BySpace, "customer,space"} {
		for _, b := range r.report(Request{From: from, To: to, GroupBy: by}).Bills {
			name := b.Space
			if by != BySpace {
				name += " of " + b.Customer
			}
			found[name] = true
			same(name, &b)
		}
	}
	for _, space := range slices.Sorted(maps.Keys(want)) {
		if n := integral(want[space], from.UnixMilli(), to.UnixMilli()); space != "all" && n.causes > 0 && !found[space] {
			r.T.Errorf("from %s to %s: %s has no bill", from, to, space)
		}
	}
	one := r.one(Request{From: from, To: to})
	same("all", &one)
	one = r.one(Request{From: from, To: to, Space: "s1"})
	same("s1", &one)
	_, err := r.read.Check(r.T.Context(), Request{Topic: "usage", From: from, To: to, GroupBy: ByDay}, func(marks, cause *Bill) {
		r.T.Errorf("by day: %+v, by cause %+v", marks, cause)
	})
	if err != nil && !errors.Is(err, ErrDiffers) {
		r.T.Fatal(err)
	}
}
