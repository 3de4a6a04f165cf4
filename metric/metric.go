package metric

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Kind is the kind of a series' points.
type Kind string

// The kinds of points. A Cumulative point is the total since Start; a Delta is what was added
// since the point before.
const (
	Unknown    Kind = ""
	Gauge      Kind = kinds.PointsGauge
	Delta      Kind = kinds.PointsDelta
	Cumulative Kind = kinds.PointsCumulative
)

// Point is the value of a series at an instant.
type Point struct {
	// Name of the metric, such as "cpu". Required.
	Name string
	// Value, unless Distribution is given.
	Value float64
	// Unit, such as "By" or "1".
	Unit   string
	Points Kind
	// Labels tell series of a metric apart, in any order, each name once. Their values should
	// be texts: a number becomes one.
	Labels []schemas.Attr
	// Time of the point. The zero time means now, by the producer's clock.
	Time time.Time
	// Start is since when a Cumulative point counts. A new start is a reset.
	Start time.Time
	// Service that measured, and Tenant whom it is about. Both tell series apart; the tenant
	// is the event's user, which an erasure names.
	Service, Tenant string
	// Distribution in place of Value.
	Distribution *Distribution
}

// Distribution stands for many values.
type Distribution struct {
	Count         int64
	Sum, Min, Max float64
	// M2 is the sum of the squared deviations from the mean.
	M2 float64
	// Buckets is the JSON text of schemas.Buckets, or empty.
	Buckets string
}

// Buffer is room for the attributes of an event. The zero value is ready, and one that is used
// again allocates nothing.
type Buffer struct{ attrs []schemas.Attr }

// Event returns the point as an event of a topic of kind metric. The error says why no such topic takes it:
// schemas.ErrValue, or ErrLabels for a label given twice.
func (p Point) Event() (schemas.Event, error) { return new(Buffer).Event(p) }

// Event is Point.Event in the buffer's room. The event is valid until the buffer is used again; Log and Publish
// copy what they take.
func (b *Buffer) Event(p Point) (schemas.Event, error) {
	a := b.attrs[:0]
	if d := p.Distribution; d != nil {
		a = append(a, schemas.Int64(kinds.ColCount, d.Count), schemas.Float64(kinds.ColSum, d.Sum), schemas.Float64(kinds.ColMin, d.Min),
			schemas.Float64(kinds.ColMax, d.Max), schemas.Float64(kinds.ColM2, d.M2), schemas.String(kinds.ColBuckets, d.Buckets))
	} else {
		a = append(a, schemas.Float64(kinds.ColValue, p.Value))
	}
	if p.Unit != "" {
		a = append(a, schemas.String(kinds.ColUnit, p.Unit))
	}
	if p.Points != Unknown {
		a = append(a, schemas.String(kinds.ColPoints, string(p.Points)))
	}
	if !p.Start.IsZero() {
		a = append(a, schemas.Time(kinds.ColStart, p.Start))
	}
	a = append(a, p.Labels...)
	b.attrs = a
	e := schemas.Event{Time: p.Time, Type: p.Name, Service: p.Service, UserID: p.Tenant, Attrs: a}
	if err := schemas.CheckKind(kinds.Metric, &e); err != nil {
		return schemas.Event{}, fmt.Errorf("metric: %w", err)
	}
	return e, nil
}
