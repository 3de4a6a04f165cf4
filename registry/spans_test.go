package registry

import "testing"

func TestSettles(t *testing.T) {
	tally := Tally{Purged: []Span{{From: 3, To: 4}, {From: 7, To: 10}}}
	for _, c := range []struct {
		end, last uint64
		want      bool
	}{{6, 10, true}, {6, 9, true}, {5, 10, false}, {6, 11, false}, {2, 4, true}, {2, 10, false}, {4, 4, false}, {9, 3, false}} {
		if got := tally.Settles(c.end, c.last); got != c.want {
			t.Errorf("ends at %d, sealed at %d: %v", c.end, c.last, got)
		}
	}
}
