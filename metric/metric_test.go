package metric

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A point of every shape is one that a topic takes.
func TestPoints(t *testing.T) {
	t.Parallel()
	topic, err := schemas.Topic{Name: "cpu", Kind: kinds.Metric}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	for name, p := range map[string]Point{
		"gauge":        {Name: "cpu", Value: 0.42, Unit: "1", Points: Gauge, Labels: []schemas.Attr{schemas.String("host", "a")}},
		"counter":      {Name: "requests", Value: 7, Points: Cumulative, Start: at.Add(-time.Hour), Service: "api", Tenant: "t-1"},
		"distribution": {Name: "latency", Distribution: &Distribution{Count: 3, Sum: 6, Min: 1, Max: 3, M2: 2, Buckets: `{"bounds":[2],"counts":[2,1]}`}},
		"zero":         {Name: "cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			e := p.Event(nil)
			if err := topic.Check(&e, at.UnixNano(), at.UnixNano()); err != nil {
				t.Error(err)
			}
			if e.Type != p.Name || e.Service != p.Service || e.UserID != p.Tenant {
				t.Errorf("%+v", e)
			}
		})
	}
}

// A point becomes an event in a frame without an allocation.
func TestPointAllocatesNothing(t *testing.T) {
	topic := schemas.NewTopicOf(kinds.Metric, "cpu")
	builder, at := frame.NewBuilder(&topic), time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	labels := []schemas.Attr{schemas.String("region", "eu"), schemas.String("host", "a")}
	var buf Buffer
	var ids schemas.IDSource
	var failed error
	log := func() {
		at = at.Add(time.Second)
		e := Point{Name: "cpu", Value: 0.42, Unit: "1", Points: Gauge, Labels: labels, Time: at, Start: at}.Event(&buf)
		if err := topic.Check(&e, at.UnixNano(), at.UnixNano()); err != nil {
			failed = err
		}
		_ = schemas.LaneOf(&topic, &e, 1, "p")
		builder.Append(&e, at.UnixNano(), ids.Next(at.UnixNano()))
		if builder.Full() {
			builder.Reset()
		}
	}
	for range 5000 { // until its buffers have grown
		log()
	}
	if n := testing.AllocsPerRun(1000, log); n != 0 || failed != nil {
		t.Errorf("%v allocations a point, %v", n, failed)
	}
}
