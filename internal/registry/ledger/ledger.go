package ledger

import (
	"cmp"
	"slices"

	"github.com/almanac-events/almanac/schemas"
)

// Erasures are the erasures of a topic at one moment, the highest fence first.
type Erasures []Erasure

// Sorted sorts erasures as Erasures have them.
func Sorted(erasures []Erasure) Erasures {
	slices.SortFunc(erasures, func(a, b Erasure) int {
		return cmp.Or(cmp.Compare(b.Fence, a.Fence), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.ID, b.ID))
	})
	return erasures
}

// Covering are the erasures that concern a frame of a message of EVENTS, with
// events between minTs and maxTs (unix ns). For most frames there is none, and
// they may pass untouched.
func (l Erasures) Covering(s schemas.Source, minTs, maxTs int64) Cover {
	var c Cover
	for i := range l {
		if l[i].Covers(s, minTs, maxTs) {
			c = append(c, l[i])
		}
	}
	return c
}

// Alike reports whether the same erasures mean two messages of EVENTS. Frames that
// are all alike can be evaluated in one statement, by the cover of any of them and of
// all their times.
func (l Erasures) Alike(a, b schemas.Source) bool {
	for i := range l {
		if l[i].Means(a) != l[i].Means(b) {
			return false
		}
	}
	return true
}

// Same reports whether they are the erasures that others are.
func (l Erasures) Same(others Erasures) bool {
	return slices.EqualFunc(l, others, func(a, b Erasure) bool { return a.ID == b.ID })
}

// Only keeps the erasures that are in one of the states.
func (l Erasures) Only(states ...State) Erasures {
	var out Erasures
	for _, e := range l {
		for _, s := range states {
			if e.State == s {
				out = append(out, e)
			}
		}
	}
	return out
}
