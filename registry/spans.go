package registry

// NotPurged are the positions of a span that were not taken out of SHARDS on
// purpose, in order.
func (t *Tally) NotPurged(s Span) []Span {
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

// Settles says whether every position above end and up to last is among those
// that are gone from SHARDS and accounted for: a shard that ends early there is
// as it should be.
func (t *Tally) Settles(end, last uint64) bool {
	return end < last && len(t.NotPurged(Span{From: end + 1, To: last})) == 0
}
