package metric

import (
	"errors"
	"math"
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
			e, err := p.Event()
			if err != nil {
				t.Fatal(err)
			}
			if err := topic.Check(&e, at.UnixNano(), at.UnixNano()); err != nil {
				t.Error(err)
			}
			if e.Type != p.Name || e.Service != p.Service || e.UserID != p.Tenant {
				t.Errorf("%+v", e)
			}
		})
	}
}

// What no topic of the kind takes is refused where it is made, and so is what has another time than it could have.
func TestPointRefuses(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	twice := []schemas.Attr{schemas.String("host", "a"), schemas.String("host", "b")}
	for name, c := range map[string]struct {
		p    Point
		want error
	}{
		"no name":               {Point{Value: 1}, schemas.ErrValue},
		"infinite":              {Point{Name: "cpu", Value: math.Inf(1)}, schemas.ErrValue},
		"a kind that is none":   {Point{Name: "cpu", Points: "sum"}, schemas.ErrValue},
		"starts after its time": {Point{Name: "cpu", Time: at, Start: at.Add(1)}, schemas.ErrValue},
		"a label twice":         {Point{Name: "cpu", Labels: twice}, schemas.ErrLabels},
		"buckets of more":       {Point{Name: "l", Distribution: &Distribution{Count: 1, Buckets: `{"bounds":[2],"counts":[2,1]}`}}, schemas.ErrValue},
		"max below min":         {Point{Name: "l", Distribution: &Distribution{Count: 1, Min: 2, Max: 1}}, schemas.ErrValue},
		"the year 3000":         {Point{Name: "cpu", Time: at.AddDate(974, 0, 0)}, schemas.ErrTimeTooFarAhead},
		"now, and its start":    {Point{Name: "cpu", Start: at, Points: Cumulative}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.p.Event(); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
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
		e, err := buf.Event(Point{Name: "cpu", Value: 0.42, Unit: "1", Points: Gauge, Labels: labels, Time: at, Start: at})
		if err != nil {
			failed = err
		}
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
