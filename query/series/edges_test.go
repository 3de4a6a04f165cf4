package series

import (
	"testing"
	"time"
)

// Points themselves are given from the beginning of a range, up to before its end.
func TestEdgesOfPoints(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC)
	var rows []point
	for i := range 3 {
		rows = append(rows, point{metric: "m", at: at.Add(time.Duration(i) * time.Minute), value: float64(i)})
	}
	r.insert(rows...)
	for name, c := range map[string]struct {
		from, to time.Time
		want     []float64
	}{
		"a minute":           {at, at.Add(time.Minute), []float64{0}},
		"two minutes":        {at, at.Add(2 * time.Minute), []float64{0, 1}},
		"all":                {at, at.Add(time.Hour), []float64{0, 1, 2}},
		"after the first":    {at.Add(1), at.Add(2*time.Minute + 1), []float64{1, 2}},
		"just the last":      {at.Add(2 * time.Minute), at.Add(2*time.Minute + 1), []float64{2}},
		"before the first":   {at.Add(-time.Minute), at, nil},
		"between two points": {at.Add(1), at.Add(time.Minute), nil},
	} {
		a, err := r.read.Align(t.Context(), Request{Topic: "cpu", Metric: "m", From: c.from, To: c.to})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []float64
		for _, g := range a.Groups {
			for _, p := range g.Points {
				got = append(got, float64(*p.Value))
			}
		}
		if len(got) != len(c.want) || len(got) > 0 && (got[0] != c.want[0] || got[len(got)-1] != c.want[len(c.want)-1]) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if !a.From.Equal(c.from) || !a.To.Equal(c.to) {
			t.Errorf("%s: it says %s to %s", name, a.From, a.To)
		}
	}
}
