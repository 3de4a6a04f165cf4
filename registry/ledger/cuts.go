package ledger

import "slices"

// Cut is rows gone from the positions after the cut before it, up to Pos.
type Cut struct {
	Pos  uint64 `json:"p"`
	Rows uint64 `json:"n"`
	// IDs is the sum of the rows' ids (schemas.IDSumSQL). Summed: it is known; earlier
	// versions did not note it.
	IDs    uint64 `json:"i,omitempty"`
	Summed bool   `json:"s,omitempty"`
}

// with adds the rows of another cut, at the position of this one.
func (c Cut) with(o Cut) Cut {
	c.Rows, c.IDs, c.Summed = c.Rows+o.Rows, c.IDs+o.IDs, c.Summed && o.Summed
	return c
}

// MaxCuts bounds a list of cuts; beyond it neighbours are joined. The sum up to a
// position between two joined cuts is then known only at the higher one.
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
		if n > 0 && out[n-1].Pos == c.Pos {
			out[n-1] = out[n-1].with(c)
			continue
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
				c = out[i+1].with(c)
			}
			half = append(half, c)
		}
		out = half
	}
	return out
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

// SumIDs is the sum of the ids of all cuts up to a position, and whether it is known.
func SumIDs(cuts []Cut, pos uint64) (sum uint64, ok bool) {
	for _, c := range cuts {
		if c.Pos > pos {
			continue
		}
		if !c.Summed {
			return 0, false
		}
		sum += c.IDs
	}
	return sum, true
}
