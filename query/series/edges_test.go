package series

import (
	"errors"
	"strings"
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
		"an instant":         {at.Add(time.Minute), at.Add(time.Minute), []float64{1}},
		"a bare instant":     {at.Add(1), at.Add(1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := r.read.Align(t.Context(), Request{Topic: "cpu", Metric: "m", From: c.from, To: c.to})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
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
			if c.to.Equal(c.from) {
				c.to = c.to.Add(1)
			}
			if !a.From.Equal(c.from) || !a.To.Equal(c.to) {
				t.Errorf("%s: it says %s to %s", name, a.From, a.To)
			}
		})
	}
}

// A range that begins where it ends is that instant: the window that it lies in or ends.
func TestWindowOfAnInstant(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 1, 10, 5, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		req      Request
		from, to time.Time
	}{
		"the end of a window":     {Request{From: at, To: at}, at.Add(-5 * time.Minute), at},
		"within a window":         {Request{From: at.Add(1), To: at.Add(1)}, at, at.Add(5 * time.Minute)},
		"final":                   {Request{From: at, To: at, Final: true, Now: at.Add(Late)}, at.Add(-5 * time.Minute), at},
		"not final":               {Request{From: at, To: at, Final: true, Now: at.Add(Late - 1)}, at, at.Add(-5 * time.Minute)},
		"not final, as it begins": {Request{From: at.Add(time.Minute), To: at.Add(time.Minute), Final: true, Now: at.Add(Late + time.Second)}, at, at},
	} {
		t.Run(name, func(t *testing.T) {
			c.req.Topic, c.req.Metric, c.req.Align, c.req.Period = "cpu", "m", Mean, 5*time.Minute
			if err := c.req.check(); err != nil || !c.req.From.Equal(c.from) || !c.req.To.Equal(c.to) {
				t.Errorf("%s: %s to %s, %v, want %s to %s", name, c.req.From, c.req.To, err, c.from, c.to)
			}
		})
	}
}

// Too many metrics are refused before any is read, and several together have the points of one answer.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	if _, err := (&Reader{}).AlignEach(t.Context(), Request{}, make([]string, MaxMetrics+1)); err == nil || !strings.Contains(err.Error(), "17 metrics, the limit is 16") {
		t.Errorf("17 metrics: %v", err)
	}
	r := newRig(t)
	at := time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC)
	r.insert(point{metric: "m", at: at, value: 1}, point{metric: "n", at: at, value: 2}, point{metric: "n", at: at.Add(1), value: 3})
	req := Request{Topic: "cpu", From: at, To: at.Add(time.Hour)}
	r.read.limits.points = 2
	if _, err := r.read.AlignEach(t.Context(), req, []string{"m", "n"}); !errors.Is(err, ErrTooMuch) {
		t.Errorf("three points of two metrics, where two are the limit: %v", err)
	}
	r.read.limits.points = 3
	a, err := r.read.AlignEach(t.Context(), req, []string{"m", "n"})
	if err != nil || a.Series != 2 || len(a.Groups) != 2 || a.Groups[0].Metric != "m" || a.Groups[1].Metric != "n" || len(a.Groups[1].Points) != 2 {
		t.Errorf("two metrics: %+v, %v", a, err)
	}
}
