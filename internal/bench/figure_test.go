package bench

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAgainstItsBar(t *testing.T) {
	for _, c := range []struct {
		f     Figure
		pass  bool
		ratio float64
	}{
		{atLeast("", "", 0.6, unitRatio, 0.6, ""), true, 0.6},
		{atLeast("", "", 0.59, unitRatio, 0.6, ""), false, 0.59},
		{atMost("", "", 5, unitMicros, 5, ""), true, 1},
		{atMost("", "", 6, unitMicros, 5, ""), false, 1.2},
		{atMost("", "", 0, unitCount, 0, ""), true, 0},
		{atMost("", "", 1, unitCount, 0, ""), false, 0},
		{atLeast("", "", math.NaN(), unitRatio, 0.6, ""), false, -1},
		{atMost("", "", math.Inf(1), unitRatio, 0.6, ""), false, -1},
	} {
		if c.f.Pass != c.pass || c.f.Ratio != c.ratio {
			t.Errorf("%+v: pass %v, ratio %v", c.f, c.f.Pass, c.f.Ratio)
		}
		if _, err := json.Marshal(c.f); err != nil {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
}

func TestQuantile(t *testing.T) {
	var hundred samples
	for i := range 100 {
		hundred = append(hundred, time.Duration(100-i))
	}
	for _, c := range []struct {
		s    samples
		q    float64
		want time.Duration
	}{
		{nil, 0.99, 0}, {samples{7}, 0, 7}, {samples{7}, 1, 7},
		{hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 0.991, 100}, {hundred, 1, 100}, {hundred, 0, 1},
	} {
		if got := slices.Clone(c.s).quantile(c.q); got != c.want {
			t.Errorf("quantile %v of %d samples is %d, want %d", c.q, len(c.s), got, c.want)
		}
	}
	// At least the share q of the samples is not above it, and it is one of them.
	rapid.Check(t, func(t *rapid.T) {
		s := samples(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(0, 50).Draw(t, "ns")) }), 1, 200).Draw(t, "s"))
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		v, below := slices.Clone(s).quantile(q), 0
		for _, x := range s {
			if x <= v {
				below++
			}
		}
		if float64(below) < q*float64(len(s))-1e-9 || !slices.Contains(s, v) {
			t.Fatalf("quantile %v of %v is %v", q, s, v)
		}
	})
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.v); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.v, got, c.want)
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Error("the median of nothing is a number")
	}
}

func TestFalls(t *testing.T) {
	up := func(ratio float64) Figure { return atLeast("rate", "", ratio, unitRatio, 0.6, "") }
	down := func(ratio float64) Figure { return atMost("cost", "", ratio, unitRatio, 1, "") }
	for _, c := range []struct {
		name          string
		now, recorded []Figure
		want          []string
	}{
		{"the same", []Figure{up(0.5), down(0.8)}, []Figure{up(0.5), down(0.8)}, nil},
		{"better", []Figure{up(0.9), down(0.1)}, []Figure{up(0.5), down(0.8)}, nil},
		{"a fifth worse is allowed", []Figure{up(0.41), down(0.95)}, []Figure{up(0.5), down(0.8)}, nil},
		{"a rate fell", []Figure{up(0.39), down(0.8)}, []Figure{up(0.5), down(0.8)}, []string{"rate"}},
		{"a cost rose", []Figure{up(0.5), down(0.97)}, []Figure{up(0.5), down(0.8)}, []string{"cost"}},
		{"missing", []Figure{up(0.5)}, []Figure{up(0.5), down(0.8)}, []string{"cost"}},
		{"no number", []Figure{up(math.NaN()), down(math.NaN())}, []Figure{up(0.5), down(0.8)}, []string{"rate", "cost"}},
		{"new ones are not compared", []Figure{up(0.5), down(9)}, []Figure{up(0.5)}, nil},
		{"nothing recorded", []Figure{up(0.1)}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range Falls(c.now, c.recorded) {
				got = append(got, f.Name)
				if f.Error() == "" {
					t.Errorf("%s: a fall without words", c.name)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: fell %v, want %v", c.name, got, c.want)
			}
		})
	}
}

func TestSlope(t *testing.T) {
	for _, c := range []struct {
		points []Point
		want   float64
		order  string
	}{
		{[]Point{{1, 3}, {10, 3}, {100, 3}}, 0, "constant, n^0.00"},
		{[]Point{{1, 2}, {10, 20}, {100, 200}}, 1, "linear, n^1.00"},
		{[]Point{{2, 8}, {4, 32}, {8, 128}}, 2, "more than linear, n^2.00"},
		{[]Point{{1, 1}, {4, 2}, {16, 4}}, 0.5, "less than linear, n^0.50"},
		{[]Point{{1, 4}, {4, 2}}, -0.5, "falls, n^-0.50"},
		{[]Point{{4, 4}, {4, 5}}, math.NaN(), "not known"},
		{nil, math.NaN(), "not known"},
	} {
		_, got := Fit(c.points)
		if math.Abs(got-c.want) > 1e-9 || math.IsNaN(got) != math.IsNaN(c.want) || Order(got) != c.order {
			t.Errorf("%v: slope %v, %q", c.points, got, Order(got))
		}
	}
}

// A table of costs by size stands below the figures.
func TestGridMarkdown(t *testing.T) {
	one := atMost("one", "a read", 12, unitMillis, 30, "once")
	one.Grid = &Grid{Head: []string{"series", "a read"}, Rows: [][]string{{"10", "3 ms"}, {"100", "12 ms"}}}
	got := Report{Figures: []Figure{one}}.Markdown()
	if want := "| a read | 12 ms | ≤ 30 ms | ok | once |\n\n| series | a read |\n|---|---|\n| 10 | 3 ms |\n| 100 | 12 ms |\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%s, want at the end %s", got, want)
	}
}

func TestSelected(t *testing.T) {
	all, err := Selected(nil)
	if err != nil || len(all) != len(Names()) {
		t.Errorf("%d of %d: %v", len(all), len(Names()), err)
	}
	some, err := Selected([]string{"log", "end-to-end"})
	if err != nil || len(some) != 2 || some[0].Name != "end-to-end" {
		t.Errorf("%v: %v", some, err)
	}
	if _, err := Selected([]string{"nonsense"}); !errors.Is(err, ErrUnknownFigure) {
		t.Errorf("%v", err)
	}
	if _, err := Selected(CheckNames()); err != nil {
		t.Error(err)
	}
}

func TestLastMonths(t *testing.T) {
	got := lastMonths(time.Date(2026, 1, 31, 23, 0, 0, 0, time.UTC), 3)
	want := []string{"2026-01", "2025-12", "2025-11"}
	for i := range want {
		if got[i].Format("2006-01") != want[i] {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

func TestMerged(t *testing.T) {
	m := Machine{CPUs: 2, FsyncMicros: 900}
	a, b, c := Figure{Name: "a", Value: 1}, Figure{Name: "b", Value: 1}, Figure{Name: "c", Value: 2}
	old := Report{Machine: m, Size: Full, Seconds: 10, Figures: []Figure{a, b}}
	again := Report{Machine: Machine{CPUs: 2, FsyncMicros: 1100}, Size: Full, Seconds: 2, Figures: []Figure{{Name: "b", Value: 2}, c}}
	got := Merged(old, again)
	if len(got.Figures) != 3 || got.Figures[0].Value != 1 || got.Figures[1].Value != 2 || got.Figures[2].Name != "c" || got.Seconds != 12 {
		t.Errorf("%+v", got)
	}
	if old.Figures[1].Value != 1 {
		t.Error("the old report was changed")
	}
	for _, other := range []Report{{Machine: Machine{CPUs: 4}, Size: Full, Figures: []Figure{c}}, {Machine: m, Size: Quick, Figures: []Figure{c}}} {
		if got := Merged(old, other); len(got.Figures) != 1 {
			t.Errorf("%+v", got)
		}
	}
}

func TestBusyOf(t *testing.T) {
	for line, want := range map[string]float64{
		"cpu  100 20 30 4000 500 6 7 8 90 9": 1.71,
		"cpu0 1 1 1 1 1 1 1 1 1 1":           0,
		"":                                   0,
	} {
		if got := busyOf(line); math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
	if c := WatchOthers().Cores(); c < 0 || math.IsNaN(c) {
		t.Errorf("others keep %v cores busy", c)
	}
}
