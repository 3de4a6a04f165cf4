package ledger

import "slices"

// Span is positions, both ends inclusive.
type Span struct {
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
}

// MaxSpans bounds the purged positions an erasure record keeps apart; a frame more is not
// purged.
const MaxSpans = 4096

// IsPurged says whether the position was taken out of SHARDS on purpose.
func (t *ErasureRecord) IsPurged(pos uint64) bool {
	return slices.ContainsFunc(t.Purged, func(s Span) bool { return s.From <= pos && pos <= s.To })
}

// AddPurged adds positions to the purged ones.
func (t *ErasureRecord) AddPurged(positions ...uint64) {
	for _, p := range positions {
		if !t.IsPurged(p) {
			t.Purged = append(t.Purged, Span{p, p})
		}
	}
	slices.SortFunc(t.Purged, func(a, b Span) int {
		if a.From < b.From {
			return -1
		}
		return 1
	})
	joined := t.Purged[:0]
	for _, s := range t.Purged {
		if n := len(joined); n > 0 && joined[n-1].To+1 == s.From {
			joined[n-1].To = s.To
			continue
		}
		joined = append(joined, s)
	}
	t.Purged = joined
}

// PurgedPositions is how many they are.
func (t *ErasureRecord) PurgedPositions() (n uint64) {
	for _, s := range t.Purged {
		n += s.To - s.From + 1
	}
	return n
}

// NotPurged are the positions of a span that were not taken out of SHARDS on
// purpose, in order.
func (t *ErasureRecord) NotPurged(s Span) []Span {
	var out []Span
	for _, p := range t.Purged { // in order, apart
		if p.To < s.From || p.From > s.To {
			continue
		}
		if p.From > s.From {
			out = append(out, Span{s.From, p.From - 1})
		}
		s.From = p.To + 1
	}
	if s.From <= s.To {
		out = append(out, s)
	}
	return out
}

// Stored says whether every position above end and up to last is among those
// that are gone from SHARDS and accounted for: a shard that ends early there is
// as it should be.
func (t *ErasureRecord) Stored(end, last uint64) bool {
	return end < last && len(t.NotPurged(Span{From: end + 1, To: last})) == 0
}
