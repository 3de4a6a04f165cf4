package ledger

import "slices"

// Cut is rows gone from a position.
type Cut struct {
	Pos  uint64 `json:"p"`
	Rows uint64 `json:"n"`
	// From is the first position of cuts that were joined, else 0: the rows are gone from From up
	// to Pos.
	From uint64 `json:"f,omitempty"`
	// IDs is the sum of the rows' ids (schemas.IDSumSQL).
	IDs uint64 `json:"i,omitempty"`
}

// join adds a cut that ends at the same position or later.
func (c Cut) join(o Cut) Cut {
	out := Cut{Pos: o.Pos, Rows: c.Rows + o.Rows, IDs: c.IDs + o.IDs}
	if first := min(c.First(), o.First()); first < out.Pos {
		out.From = first
	}
	return out
}

// First is the first position that rows are gone from.
func (c Cut) First() uint64 {
	if c.From > 0 {
		return c.From
	}
	return c.Pos
}

// MaxCuts bounds a list of cuts; beyond it neighbours are joined. The sum up to a
// position between two joined cuts is then known only at the higher one; see Known.
const MaxCuts = 2048

// AddCuts is the sum of two lists, by position.
func AddCuts(a, b []Cut) []Cut {
	out := append(slices.Clone(a), b...)
	slices.SortFunc(out, func(x, y Cut) int {
		if x.Pos < y.Pos {
			return -1
		} else if x.Pos > y.Pos {
			return 1
		}
		return 0
	})
	n := 0
	for _, c := range out {
		for n > 0 && out[n-1].Pos >= c.First() { // of one position, or of those that were joined
			n--
			c = out[n].join(c)
		}
		out[n] = c
		n++
	}
	out = out[:n]
	for len(out) > MaxCuts {
		half := out[:0]
		for i := 0; i < len(out); i += 2 {
			c := out[i]
			if i+1 < len(out) {
				c = c.join(out[i+1])
			}
			half = append(half, c)
		}
		out = half
	}
	return out
}

// Known reports whether it is known how many rows are gone up to a position.
func Known(cuts []Cut, pos uint64) bool {
	return !slices.ContainsFunc(cuts, func(c Cut) bool { return c.First() <= pos && pos < c.Pos })
}

// SumCuts is the rows of all cuts up to a position.
func SumCuts(cuts []Cut, pos uint64) (n uint64) {
	for _, c := range cuts {
		if c.Pos <= pos {
			n += c.Rows
		}
	}
	return n
}

// SumIDs is the sum of the ids of all cuts up to a position.
func SumIDs(cuts []Cut, pos uint64) (sum uint64) {
	for _, c := range cuts {
		if c.Pos <= pos {
			sum += c.IDs
		}
	}
	return sum
}
