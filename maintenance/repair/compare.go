package repair

import (
	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// stretch is positions, above lo and up to hi, whose rows differ from what the
// frames brought.
type stretch struct {
	lo, hi     uint64
	want, have uint64 // of rest, want is the rows the frames brought up to lo
	distinct   uint64 // ids; once they were looked at, rows that differ
}

// told joins the rows of positions up to which the erasure record does not tell how many are gone
// with those of the next one that it does.
func told(groups []tables.Group, cuts []ledger.Cut) (out []tables.Group) {
	var before tables.Group
	for i, g := range groups {
		g.Rows, g.Distinct, g.IDs = g.Rows+before.Rows, g.Distinct+before.Distinct, g.IDs+before.IDs
		if before = g; i == len(groups)-1 || ledger.Known(cuts, g.Pos) {
			out, before = append(out, g), tables.Group{}
		}
	}
	return out
}

// compare walks a shard's rows by position against its frames, and gives the
// stretches that differ. gone is how many rows of the positions above lo and up
// to hi were erased. Between positions the frames do not tell, because they were
// purged, rows are compared together.
//
// A stretch with as many rows as it should have and fewer ids is suspect too:
// one row may be missing and another doubled.
//
// rest is what lies above the last position that could be compared: where SHARDS
// lost its end, ClickHouse alone tells of it.
func compare(c chain, groups []tables.Group, gone func(lo, hi uint64) uint64) (out []stretch, rest stretch) {
	lo, base := uint64(0), uint64(0)
	var have, distinct uint64
	for _, g := range groups {
		have, distinct = have+g.Rows, distinct+g.Distinct
		upTo, ok := c.upTo(g.Pos)
		if !ok {
			continue
		}
		want := upTo - base
		want -= min(want, gone(lo, g.Pos))
		if have != want || distinct < have {
			out = append(out, stretch{lo, g.Pos, want, have, distinct})
		}
		lo, base, have, distinct = g.Pos, upTo, 0, 0
	}
	rest = stretch{lo: lo, hi: lo, want: base, have: have, distinct: distinct}
	if len(groups) > 0 {
		rest.hi = groups[len(groups)-1].Pos
	}
	return out, rest
}

// replaced gives the stretches that have as many rows as their frames brought, and not
// the same ones: the sums of ids and times differ. Frames of earlier versions do not have
// sums, and where rows were erased the counts alone are compared.
func replaced(c chain, groups []tables.Group, gone func(lo, hi uint64) uint64) (out []stretch) {
	lo, base, before := uint64(0), uint64(0), schemas.IDSums{From: 1}
	var have, distinct, sum uint64
	for _, g := range groups {
		have, distinct, sum = have+g.Rows, distinct+g.Distinct, sum+g.IDs
		i := c.at(g.Pos)
		if i == len(c) || c[i].pos != g.Pos {
			continue
		}
		brought, known := c[i].ids.Since(before)
		if want := c[i].shardRows - base; known && want == have && brought != sum && gone(lo, g.Pos) == 0 {
			out = append(out, stretch{lo, g.Pos, want, have, distinct})
		}
		lo, base, before = g.Pos, c[i].shardRows, c[i].ids
		have, distinct, sum = 0, 0, 0
	}
	return out
}
