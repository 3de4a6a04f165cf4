package decide

import (
	"slices"
	"time"
)

// Bounds of a rule's series.
const (
	// MaxGroups bounds the groups of a rule that are counted: what a rule groups by may have any number of values.
	MaxGroups = 1000
	// cells is how many parts a window is counted in, at most: those of five minutes are of a second each.
	cells = 300
)

// Series counts the events of a rule that match, by group and time of acceptance. It is not safe for concurrent use.
type Series struct {
	window int64
	cell   int64
	groups map[string]*counts
	// Left counts events of groups above MaxGroups, which are not counted.
	Left uint64
}

// counts are the events of a group: points in the order of their times, and the sum of all.
type counts struct {
	points []point
}

type point struct {
	at int64 // an instant
	n  uint64
}

// NewSeries makes a series for a window.
func NewSeries(window time.Duration) *Series {
	w := int64(window)
	return &Series{window: w, cell: max(int64(Step), w/cells), groups: map[string]*counts{}}
}

// Add counts n events of a group that were accepted at a time, unix ns.
func (s *Series) Add(group string, accepted int64, n uint64) {
	c := s.groups[group]
	if c == nil {
		if len(s.groups) >= MaxGroups {
			s.Left += n
			return
		}
		c = &counts{}
		s.groups[group] = c
	}
	at := Instant(accepted)
	i, _ := slices.BinarySearchFunc(c.points, at, func(p point, at int64) int { return int(min(max(p.at-at, -1), 1)) })
	switch {
	case i < len(c.points) && c.points[i].at == at:
		c.points[i].n += n
	case i > 0 && at-c.points[i-1].at < s.cell:
		c.points[i-1].n += n
	default:
		c.points = slices.Insert(c.points, i, point{at, n})
	}
}

// Points is how many points the groups have together, of 16 bytes each.
func (s *Series) Points() (n int) {
	for _, c := range s.groups {
		n += len(c.points)
	}
	return n
}

// Counts calls f with the count of each group at an instant, and forgets what lies before its window. A
// group of which nothing is left is counted with 0 for one last time.
func (s *Series) Counts(at int64, f func(group string, n uint64)) {
	for group, c := range s.groups {
		gone := 0
		for gone < len(c.points) && c.points[gone].at <= at-s.window {
			gone++
		}
		c.points = c.points[gone:] // of many a copy of the rest for each would take long
		var n uint64
		for _, p := range c.points {
			if p.at > at {
				break
			}
			n += p.n
		}
		f(group, n)
		if len(c.points) == 0 {
			delete(s.groups, group)
		}
	}
}

// Groups is how many groups have events in the window.
func (s *Series) Groups() int { return len(s.groups) }
