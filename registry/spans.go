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
