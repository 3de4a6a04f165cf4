package registry

import (
	"cmp"
	"maps"

	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Point is how far a lane was in its stream: the message that it had routed last, of an era of the lane.
type Point struct {
	Era uint32 `json:"era,omitempty"`
	Seq uint64 `json:"seq,omitempty"`
}

// PointOf is where a checkpoint has its lane.
func PointOf(cp *checkpoint.Checkpoint) Point { return Point{cp.Era, cp.Source} }

// Compare is negative where a lane was at p before it was at o.
func (p Point) Compare(o Point) int {
	return cmp.Or(cmp.Compare(p.Era, o.Era), cmp.Compare(p.Seq, o.Seq))
}

// Order is a shard's place among those that its lane made in a month. It is written once, with the entry: the point at
// which the lane was, so that all of the shard's frames came after it. A router that a repair set back makes its next
// shard at a lower point than it made one at before: Turn counts that.
type Order struct {
	Turn uint32 `json:"turn,omitempty"`
	Point
}

// Compare is negative where a lane made a shard with order o before one with order p.
func (o Order) Compare(p Order) int {
	return cmp.Or(cmp.Compare(o.Turn, p.Turn), o.Point.Compare(p.Point))
}

// Order is that of the next shard that a lane makes in the month, at a point.
func (h *Head) Order(lane int, at Point) Order {
	last, made := h.Youngest[lane]
	next := Order{last.Turn, at}
	if made && next.Compare(last) <= 0 {
		next.Turn++
	}
	return next
}

// Made enters a shard of the month, so that none that its lane makes later is ordered before it.
func (h *Head) Made(s *Shard) {
	lane := s.ID.Lane()
	if last, made := h.Youngest[lane]; !made || s.Order.Compare(last) > 0 {
		h.Youngest = maps.Clone(h.Youngest)
		if h.Youngest == nil {
			h.Youngest = map[int]Order{}
		}
		h.Youngest[lane] = s.Order
	}
}

// Compare orders the shards of a topic: by month, and those of a lane in a month as they were filled. It never changes
// for two shards. Those of two lanes stand in an order of their own, mostly that of their age.
func Compare(a, b Shard) int {
	return cmp.Or(cmp.Compare(a.Month, b.Month), a.Order.Compare(b.Order), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// SameLane reports whether two shards are of one lane and month: Compare says which of them was filled first.
func (s *Shard) SameLane(o *Shard) bool { return s.Month == o.Month && s.ID.Lane() == o.ID.Lane() }

// Precedes reports whether every frame of a sealed shard came to its lane before every frame of another.
func (s *Shard) Precedes(o *Shard) bool {
	return s.Ended.Seq > 0 && s.Ended.Compare(o.Order.Point) <= 0
}
