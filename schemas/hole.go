package schemas

import (
	"cmp"
	"slices"
)

// Hole tells of frames that SHARDS does not hold any more, between two of a shard that it
// holds: the purge of an erasure took them. Their traces went with them. A lane is routed
// in order, so they came from messages of EVENTS between those of the two frames: Count of
// them, above sequence After and below sequence Before.
type Hole struct{ After, Before, Count uint64 }

// HoleBetween is the hole between a shard's frame and the next that SHARDS holds, up to
// the end of EVENTS. What is missing before a shard's first frame is not a hole: the
// janitor takes that by age. Between two eras of the lane the later frame does not bound
// it, and it reaches up to the end.
func HoleBetween(a, b *Placed, end uint64) (h Hole, ok bool) {
	if b.Pos <= a.Pos+1 {
		return h, false
	}
	h = Hole{After: a.SourceSeq, Before: end + 1, Count: b.Pos - a.Pos - 1}
	if a.SourceEra == b.SourceEra {
		h.Before = min(h.Before, b.SourceSeq)
	}
	return h, h.After+1 < h.Before
}

// outsideHoles leaves out of what has no trace what joined holes account for. Where more has
// no trace than frames were taken, which of it was routed is not known, and all of it
// stays.
func outsideHoles(lost []SeqSpan, holes []Hole) []SeqSpan {
	for _, h := range holes {
		var within uint64
		var rest []SeqSpan
		for _, s := range lost {
			in := SeqSpan{max(s.From, h.After+1), min(s.To, h.Before-1)}
			if in.From > in.To {
				rest = append(rest, s)
				continue
			}
			within += in.len()
			if s.From < in.From {
				rest = append(rest, SeqSpan{s.From, in.From - 1})
			}
			if s.To > in.To {
				rest = append(rest, SeqSpan{in.To + 1, s.To})
			}
		}
		if within > 0 && within <= h.Count {
			lost = rest
		}
	}
	return lost
}

// joined are the holes with those that overlap as one, of other lanes or shards.
func joined(holes []Hole) (out []Hole) {
	holes = slices.SortedFunc(slices.Values(holes), func(a, b Hole) int { return cmp.Compare(a.After, b.After) })
	for _, h := range holes {
		if n := len(out); n > 0 && h.After+1 < out[n-1].Before {
			out[n-1].Before, out[n-1].Count = max(out[n-1].Before, h.Before), out[n-1].Count+h.Count
			continue
		}
		out = append(out, h)
	}
	return out
}
