package producer

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Series is what the points of one series have in common, checked by the producer that made it and for that one alone:
// a producer has one version of its topic. A point of it costs a tenth of what the event does. It may be used by many
// goroutines at once.
type Series struct {
	p    *Producer
	row  *frame.Series
	lane *lane
	size int // Event.Bytes of a point without a start
	// worst is what a point adds to a frame at most, with a start.
	worst int
}

// Point is one of a series: its time, its value and, unless it is 0, its start, both in unix ns.
type Point struct {
	Time  int64
	Value float64
	Start int64
}

// Series checks what points of one series have in common: an event of a topic of kind metric without time, value and
// start, and with the kind of points, if any, among its attributes. It is nil where the topic asks more of each point
// than its own time, value and start tell, as a descriptor with whole numbers does: add events then. An error says why
// no point of the series can be taken.
func (p *Producer) Series(ev Event) (*Series, error) {
	ev = schemas.PointOf(ev, p.now(), 0, 0)
	a, err := p.admit(&ev)
	if err != nil || !p.topic.OnePerSeries(&ev) {
		return nil, err
	}
	n := ev.Bytes()
	return &Series{
		p: p, row: frame.NewSeries(&p.topic, &ev), lane: p.laneOf(&ev, a), size: n,
		worst: frame.MaxRowBytes(&p.topic, n+schemas.PointStartBytes, len(ev.Attrs)+1),
	}, nil
}

// Bytes returns what the series holds in memory, within a few per cent.
func (s *Series) Bytes() int { return 64 + s.row.Bytes() }

// PointBytes returns what a point of the series counts as: Event.Bytes of its event.
func (s *Series) PointBytes(pt Point) int {
	if pt.Start != 0 {
		return s.size + schemas.PointStartBytes
	}
	return s.size
}

// check reports why a point cannot be taken at now, unix ns.
func (s *Series) check(pt Point, now int64) error {
	if gone := s.p.gone.Load(); gone != nil {
		return *gone
	}
	if err := s.p.topic.CheckPoint(pt.Time, now, pt.Value, pt.Start); err != nil {
		return err
	}
	return s.p.server.check(&s.p.topic, pt.Time, now)
}

// admitted is what the producer works out about a point that was checked.
func (pt *batchedPoint) admitted(now int64) admitted {
	return admitted{ts: pt.at.Time, now: now, size: pt.s.PointBytes(pt.at) + rowBytes, worst: pt.s.worst}
}

// batchedPoint is a point of a batch, admitted.
type batchedPoint struct {
	s     *Series
	at    Point
	after int // so many events of the batch come before it
}

// AddPoint is Add of a point of a series that the batch's producer made. A batch with a key takes none.
func (b *Batch) AddPoint(s *Series, pt Point) error {
	switch {
	case b.keyed != nil:
		return fmt.Errorf("%w: a point of a series, in a batch with a key", ErrKey)
	case s.p != b.p:
		return fmt.Errorf("%w: a series of another producer", ErrSeries)
	}
	if b.now == 0 {
		b.now = b.p.now()
	}
	if err := s.check(pt, b.now); err != nil {
		return err
	}
	b.points = append(b.points, batchedPoint{s, pt, len(b.rows)})
	b.bytes += s.PointBytes(pt) + rowBytes
	return nil
}
