package ledger

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

// An erasure concerns a frame up to its fence whose times overlap; of many, those
// that concern it and no other.
func TestCovering(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		small := rapid.Int64Range(0, 20)
		var l Erasures
		for i := range rapid.IntRange(0, 6).Draw(rt, "erasures") {
			from := small.Draw(rt, "from")
			l = append(l, Erasure{
				ID: fmt.Sprint(i), Fence: uint64(small.Draw(rt, "fence")), FenceTime: small.Draw(rt, "fence time"),
				From: from, To: from + small.Draw(rt, "span"),
			})
		}
		l = Sorted(l)
		s, lo := schemas.Source{Seq: uint64(small.Draw(rt, "seq")), Stored: small.Draw(rt, "stored")}, small.Draw(rt, "lo")
		hi := lo + small.Draw(rt, "length")
		got := map[string]bool{}
		for _, e := range l.Covering(s, lo, hi) {
			got[e.ID] = true
		}
		for _, e := range l {
			later := s.Stored != 0 && e.FenceTime != 0 && s.Stored > e.FenceTime
			want := s.Seq <= e.Fence && !later && !(hi < e.From || lo > e.To)
			if got[e.ID] != want {
				rt.Fatalf("frame %+v [%d, %d], erasure %+v: covering is %v", s, lo, hi, e, got[e.ID])
			}
		}
		// Frames that are alike may share a statement: the same erasures concern them
		// where their times are the same.
		other := schemas.Source{Seq: uint64(small.Draw(rt, "other seq")), Stored: small.Draw(rt, "other stored")}
		same := true
		for _, e := range l {
			same = same && len((Erasures{e}).Covering(s, e.From, e.To)) == len((Erasures{e}).Covering(other, e.From, e.To))
		}
		if l.Alike(s, other) != same {
			rt.Fatalf("%+v and %+v under %+v: alike is %v", s, other, l, !same)
		}
	})
}
