package usage

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The buckets of a range, whatever their edges, add up to the integral.
func TestRunning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		end := int64(1000)
		diffs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) diff {
			return diff{ms: rapid.Int64Range(0, end).Draw(t, "ms"), delta: rapid.Int64Range(-1<<53, 1<<53).Draw(t, "delta")}
		})).Draw(t, "diffs")
		edges := rapid.SliceOfNDistinct(rapid.Int64Range(0, end), 2, 6, rapid.ID).Draw(t, "edges")
		slices.Sort(edges)
		from, to := edges[0], edges[len(edges)-1]
		want := integral(diffs, from, to)
		var spans []bucket
		for i := range len(edges) - 1 {
			b := bucket{from: edges[i], to: edges[i+1]}
			for _, d := range diffs {
				if d.ms >= b.from && d.ms < b.to {
					b.delta.Add(&b.delta, big.NewInt(d.delta))
					b.weighted.Add(&b.weighted, new(big.Int).Mul(big.NewInt(d.delta), big.NewInt(b.to-d.ms)))
					b.causes++
				}
			}
			spans = append(spans, b)
		}
		var usage big.Int
		causes := want.causesBefore
		got := running(&want.before, spans)
		for i := range got {
			usage.Add(&usage, &got[i].usage)
			causes += got[i].causes
		}
		last := got[len(got)-1]
		if usage.Cmp(&want.usage) != 0 || last.end.Cmp(&want.end) != 0 || causes != want.causes {
			t.Fatalf("usage %s, end %s, %d causes; want %s, %s, %d", &usage, &last.end, causes, &want.usage, &want.end, want.causes)
		}
	})
}

func TestAverage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		usage string
		ms    int64
		want  string
	}{
		{"298512000000", 2419200000, "123.392857142857"},
		{"2659942395386265600000", 2419200000, "1099513225606.095238095238"},
		{"0", 1, "0"},
		{"-1", 3, "-0.333333333333"},
		{"-5", 1, "-5"},
		{"1", 8, "0.125"},
	} {
		u, _ := new(big.Int).SetString(c.usage, 10)
		if got := average(u, c.ms); got != c.want {
			t.Errorf("%s in %d ms: %s, want %s", c.usage, c.ms, got, c.want)
		}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	for name, req := range map[string]Request{
		"no range":         {Topic: "usage"},
		"from after to":    {Topic: "usage", From: now, To: now.Add(-time.Hour)},
		"from is to":       {Topic: "usage", From: now, To: now},
		"no topic":         {From: now, To: now.Add(time.Hour)},
		"group":            {Topic: "usage", From: now, To: now.Add(time.Hour), GroupBy: "year"},
		"measure":          {Topic: "usage", From: now, To: now.Add(time.Hour), Measure: "max"},
		"too many days":    {Topic: "usage", From: now.AddDate(-40, 0, 0), To: now, GroupBy: ByDay},
		"far away":         {Topic: "usage", From: now, To: now.AddDate(400, 0, 0)},
		"before the epoch": {Topic: "usage", From: now.AddDate(-60, 0, 0), To: now},
	} {
		t.Run(name, func(t *testing.T) {
			if err := req.check(); err == nil {
				t.Errorf("%s was taken", name)
			}
		})
	}
	days := Request{Topic: "usage", From: now.Add(12 * time.Hour), To: now.AddDate(0, 0, 3), GroupBy: ByDay}
	if err := days.check(); err != nil || len(days.edges()) != 3 || days.edges()[1] != now.AddDate(0, 0, 1).UnixMilli() {
		t.Errorf("%v: %v", err, days.edges())
	}
}

// Averages in machine words are those in big integers, and large ones are left to these.
func TestAverageWords(t *testing.T) {
	t.Parallel()
	words := 0
	rapid.Check(t, func(t *rapid.T) {
		usage := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 17).Draw(t, "usage"))
		if rapid.Bool().Draw(t, "negative") {
			usage.Neg(usage)
		}
		ms := rapid.Int64Range(1, 1<<45).Draw(t, "ms")
		text, ok := averageWords(usage, ms)
		if ok {
			words++
		}
		if want := averageBig(usage, ms); ok && text != want {
			t.Fatalf("%s in %d ms: %s, want %s", usage, ms, text, want)
		}
	})
	if words == 0 {
		t.Error("none was in machine words")
	}
}
