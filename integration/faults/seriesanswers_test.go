package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/schemas"
)

// answered is a read and its answer.
type answered struct {
	name string
	req  series.Request
	want string
}

// exampleAnswers are those of the acceptance, by the examples.
func exampleAnswers() []answered {
	const minutes = time.Minute
	ask := func(metric string, period time.Duration, align, reduce series.Aligner, by ...string) series.Request {
		return series.Request{Metric: metric, From: clock("12:00:00"), To: clock("12:10:00"), Period: period, Align: align, Reduce: reduce, By: by}
	}
	cpu, pairs := "map[host:a region:eu] %", "map[project:p] "
	return []answered{
		{"60 s", ask("cpu", minutes, series.Summary, series.None), cpu + " 12:05 2/110.5/312.5/98/123 12:06 2/112/162/103/121 12:07 2/105.5/0.5/105/106"},
		{"300 s", ask("cpu", 5*minutes, series.Summary, series.None), cpu + " 12:05 2/110.5/312.5/98/123 12:10 4/108.75/204.75/103/121"},
		{"p50", ask("cpu", 5*minutes, series.P50, series.None), cpu + " 12:05 110.5 12:10 105.5"},
		{"edges of a window", ask("edge", minutes, series.Sum, series.None), "map[]  12:05 1 12:06 2"},
		{"mean of means", ask("pair", minutes, series.Mean, series.Mean, "project"), pairs + " 12:05 80.25"},
		{"mean of all", ask("pair", minutes, series.Summary, series.Mean, "project"), pairs + " 12:05 90.3333333333"},
		{"sum of all", ask("pair", minutes, series.Summary, series.Sum, "project"), pairs + " 12:05 271"},
		{"least of all", ask("pair", minutes, series.Summary, series.Min, "project"), pairs + " 12:05 50"},
		{"greatest of all", ask("pair", minutes, series.Summary, series.Max, "project"), pairs + " 12:05 123"},
		{"count of all", ask("pair", minutes, series.Summary, series.Count, "project"), pairs + "1 12:05 3"},
		{"summary of all", ask("pair", minutes, series.Summary, series.Summary), "map[]  12:05 3/90.3333333333/2752.66666667/50/123"},
		{"by a label", series.Request{Metric: "pair", Where: "attributes.s = 'B'", From: clock("12:00:00"), To: clock("12:10:00")}, "map[project:p s:B]  12:04 50"},
		{"delta", ask("requests", minutes, series.Delta, series.None), "map[] 1 12:02 60 12:03 20 12:04 30"},
		{"rate", ask("requests", minutes, series.Rate, series.None), "map[] 1/s 12:02 1 12:03 0.333333333333 12:04 0.5"},
		{"rate of 5 minutes", ask("requests", 5*minutes, series.Rate, series.Sum), "map[] 1/s 12:05 0.366666666667"},
		{"corrected", ask("corrected", minutes, series.Max, series.None), "map[]  12:01 2"},
		{"a good line among bad ones", ask("among", minutes, series.Sum, series.None), "map[]  12:09 7"},
		{"a tenant", ask("leaving", minutes, series.Mean, series.None), "map[user_id:t-9]  12:01 9"},
	}
}

// aligned asks for every answer of the acceptance.
func (m *measured) aligned(ctx context.Context, topic string) error {
	for _, c := range exampleAnswers() {
		if c.req.Topic = topic; m.gone && c.req.Metric == "leaving" {
			c.want = ""
		}
		a, err := m.points.Align(ctx, c.req)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if got := groupsText(a.Groups); got != c.want {
			return wrongly("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for _, refused := range []struct {
		name string
		req  series.Request
		want error
		says string
	}{
		{"a period of 59 s", series.Request{Metric: "edge", From: clock("12:00:00"), To: clock("12:10:00"), Align: series.Mean, Period: 59 * time.Second}, schemas.ErrRequest, "period 59s: it must be a multiple of 1m0s"},
		{"100,001 points", series.Request{Metric: "edge", From: clock("12:00:00"), To: clock("12:00:00").Add(100_001 * time.Minute), Align: series.Mean, Period: time.Minute}, series.ErrTooMuch, "100001 points, the limit is 100000. A period of 2m0s fits"},
	} {
		refused.req.Topic = topic
		if _, err := m.points.Align(ctx, refused.req); !errors.Is(err, refused.want) || !strings.Contains(err.Error(), refused.says) {
			if errors.Is(err, schemas.ErrRequest) || err == nil {
				return wrongly("%s: %v", refused.name, err)
			}
			return err
		}
	}
	return errors.Join(m.lists(ctx, topic), m.realAligned(ctx, topic))
}

// lists asks which series there are.
func (m *measured) lists(ctx context.Context, topic string) error {
	list, more, err := m.points.List(ctx, series.ListRequest{Topic: topic})
	if err != nil {
		return fmt.Errorf("the list: %w", err)
	}
	want := 8 + len(m.real)
	if m.gone {
		want--
	}
	if len(list) != want || more {
		return wrongly("%d series, want %d: %+v", len(list), want, list)
	}
	return nil
}

// realAligned compares every point of the real series.
func (m *measured) realAligned(ctx context.Context, topic string) error {
	for i := range m.real {
		s := &m.real[i]
		a, err := m.points.Align(ctx, series.Request{Topic: topic, Metric: s.name, From: time.Date(2013, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if len(a.Groups) != 1 || len(a.Groups[0].Points) != len(s.values) {
			return wrongly("%s: %d series, points %d, want %d", s.name, len(a.Groups), pointsOf(a), len(s.values))
		}
		for j := range a.Groups[0].Points {
			p := &a.Groups[0].Points[j]
			if v, ok := s.values[p.Time]; !ok || float64(*p.Value) != v || j > 0 && !p.Time.After(a.Groups[0].Points[j-1].Time) {
				return wrongly("%s at %s: %g, want %g once", s.name, p.Time, float64(*p.Value), v)
			}
		}
	}
	return nil
}

func pointsOf(a *series.Answer) (n int) {
	for i := range a.Groups {
		n += len(a.Groups[i].Points)
	}
	return n
}

// groupsText is groups in one line: labels, unit, and each point's time and value, or count, mean, m2, least and greatest.
func groupsText(groups []series.Group) string {
	var lines []string
	for _, g := range groups {
		line := fmt.Sprint(g.Labels, " ", g.Unit)
		for _, p := range g.Points {
			line += p.Time.Format(" 15:04 ")
			if d := p.Distribution; d != nil {
				line += fmt.Sprintf("%d/%.12g/%.12g/%.12g/%.12g", d.Count, float64(d.Mean), float64(d.M2), float64(d.Min), float64(d.Max))
			} else {
				line += fmt.Sprintf("%.12g", float64(*p.Value))
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}
