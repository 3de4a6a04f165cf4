package producer_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// seriesTopic has rules, descriptors and defaults for its labels.
func seriesTopic() schemas.Topic {
	topic := schemas.NewTopicOf(kinds.Metric, "cpu")
	topic.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyHash}, {Field: "user_id", Rule: schemas.PrivacyHash}, {Field: "ip", Rule: schemas.PrivacyTruncateIP}}
	topic.Metrics = []schemas.MetricDescriptor{
		{Name: "cores", Type: kinds.ValueInt64}, {Name: "load", Unit: "1", Points: kinds.PointsGauge, Type: kinds.ValueDouble, Required: []string{"host"}, Defaults: map[string]string{"region": "eu"}},
	}
	return topic
}

// Points of a series are stored as their events would be, in the order of the batch, and refused as those.
func TestPointsOfSeries(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	now := time.Now()
	at := func(d time.Duration) int64 { return now.Add(d).UnixNano() }
	series := map[string]producer.Event{
		"plain":        {Type: "up", Service: "node", Attrs: []producer.Attr{producer.String("z", "1"), producer.String("a", "2")}},
		"ruled":        {Type: "up", UserID: "u-7", Attrs: []producer.Attr{producer.String("email", "a@b.c"), producer.String("ip", "10.1.2.3")}},
		"completed":    {Type: "load", Attrs: []producer.Attr{producer.String("host", "a")}},
		"stale":        {Type: "load", Attrs: []producer.Attr{producer.String("host", "a"), producer.String(kinds.ColPoints, kinds.PointsStale)}},
		"not UTF-8":    {Type: "up", Attrs: []producer.Attr{producer.String("host", "\xff")}},
		"no labels":    {Type: "up"},
		"each its own": {Type: "cores", Attrs: []producer.Attr{producer.String("host", "a")}},
	}
	refused := map[string]producer.Event{
		"no label": {Type: "load"}, "no name": {}, "twice": {Type: "up", Attrs: []producer.Attr{producer.String("a", "1"), producer.String("a", "2")}},
		"a long name": {Type: "up", Attrs: []producer.Attr{producer.String(strings.Repeat("x", 300), "1")}},
		"large":       {Type: "up", Attrs: []producer.Attr{producer.String("a", strings.Repeat("x", schemas.MaxEventBytes))}},
	}
	points := []producer.Point{
		{Time: at(0), Value: 1}, {Time: at(0), Value: 2.5, Start: at(-time.Hour)}, {Time: at(-40 * 24 * time.Hour), Value: -3}, {Time: at(-time.Second), Value: 0},
		{Time: at(0), Value: 4, Start: at(time.Hour)}, {Time: at(1000 * time.Hour), Value: 5}, {Time: 0, Value: 6}, {Time: -1, Value: 7}, {Time: at(0), Value: math.NaN()}, {Time: at(0), Value: math.Inf(1)},
	}
	run := func(bySeries bool) (events []schemas.Event, said []string) {
		m := producer.NewMemory(seriesTopic())
		p, err := m.Producer(producer.Config{Topic: "cpu", Service: "api", PrivacyKey: []byte(strings.Repeat("k", 32))})
		if err != nil {
			t.Fatal(err)
		}
		b := p.NewBatch("")
		for _, all := range []map[string]producer.Event{series, refused} {
			names := make([]string, 0, len(all))
			for name := range all {
				names = append(names, name)
			}
			slices.Sort(names)
			for _, name := range names {
				given := all[name]
				var s *producer.Series
				var err error
				if bySeries {
					if s, err = p.Series(given); (s == nil) != (err != nil || name == "each its own") {
						t.Fatalf("%s: series %v, %v", name, s, err)
					}
				}
				for _, pt := range points {
					var bad error
					switch {
					case err != nil:
						bad = err
					case s != nil:
						bad = b.AddPoint(s, pt)
					default:
						bad = b.Add(schemas.PointOf(given, pt.Time, pt.Value, pt.Start))
					}
					if bad != nil {
						why, _, _ := strings.Cut(bad.Error(), " ahead of")
						said = append(said, name+": "+why)
					}
				}
			}
		}
		if err := b.Submit(ctx); err != nil {
			t.Fatal(err)
		}
		if err := b.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		if n := len(m.Events()); n != b.Len() || n != b.Taken() || int(p.Stats().Logged) != n {
			t.Errorf("%d events, the batch has %d and %d were taken", n, b.Len(), b.Taken())
		}
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		events = m.Events()
		slices.SortFunc(events, func(a, b schemas.Event) int { return strings.Compare(a.ID.String(), b.ID.String()) })
		for i := range events {
			events[i].ID = schemas.ID{}
		}
		return events, said
	}
	events, said := run(true)
	want, wanted := run(false)
	if diff := cmp.Diff(want, events, cmp.AllowUnexported(schemas.Attr{})); diff != "" || len(events) == 0 {
		t.Error(diff)
	}
	// Labels are looked at before times: of a refused series only the first word is the same.
	first := func(said []string) (out []string) {
		had := map[string]bool{}
		for _, one := range said {
			name, _, _ := strings.Cut(one, ": ")
			if _, whole := refused[name]; !whole || !had[name] {
				out = append(out, one)
			}
			had[name] = true
		}
		return out
	}
	if diff := cmp.Diff(first(wanted), first(said)); diff != "" {
		t.Error(diff)
	}
}

func TestSeriesOfAnother(t *testing.T) {
	t.Parallel()
	m := producer.NewMemory(seriesTopic())
	var all [2]*producer.Producer
	for i := range all {
		p, err := m.Producer(producer.Config{Topic: "cpu", PrivacyKey: []byte(strings.Repeat("k", 32))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close(t.Context()) })
		all[i] = p
	}
	s, err := all[0].Series(producer.Event{Type: "up"})
	if err != nil {
		t.Fatal(err)
	}
	pt := producer.Point{Time: time.Now().UnixNano(), Value: 1}
	if err := all[1].NewBatch("").AddPoint(s, pt); !errors.Is(err, producer.ErrSeries) {
		t.Errorf("a series of another producer: %v", err)
	}
	if err := all[0].NewBatch("key").AddPoint(s, pt); !errors.Is(err, producer.ErrKey) {
		t.Errorf("a batch with a key: %v", err)
	}
}
