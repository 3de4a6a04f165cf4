package query

import "github.com/almanac-events/almanac/internal/query/recent"

// reach guesses how far a page without a filter goes: the time, in its direction,
// up to which some shards should have spare times the events it takes, if each has
// its own evenly spread. ClickHouse then opens no part beyond. ok is false when the
// page may need whatever the shards have.
func (p *plan) reach(parts []recent.Shard, spare float64) (edge int64, ok bool) {
	if !p.where.All() || len(parts) == 0 {
		return 0, false
	}
	var start, end int64
	for i := range parts {
		lo, hi := max(parts[i].MinTs, p.lower()), min(parts[i].MaxTs, p.upper())
		if near := p.near(lo, hi); i == 0 || p.beyond(start, near) {
			start = near
		}
		if far := p.near(hi, lo); i == 0 || p.beyond(far, end) {
			end = far
		}
	}
	for span := int64(1); span < max(start, end)-min(start, end); span *= 2 {
		lo, hi := start-span, start
		if p.asc {
			lo, hi = start, start+span
		}
		rows := 0.0
		for i := range parts {
			if s := &parts[i]; s.Overlaps(lo, hi) {
				rows += share(s, lo, hi) * float64(s.Rows)
			}
		}
		if rows >= spare*float64(p.limit+1) {
			return p.near(hi, lo), true
		}
	}
	return 0, false
}

// spares are for events that are not evenly spread: those of the last moments often
// are not. A page of 500 times the first is two granules of 8,192 rows, and to read
// less than a granule saves nothing; where it was too little, the others are tried
// before all is read: some 200,000 rows, and 1.6 million.
var spares = [...]float64{32, 1024, 8192}

// upTo are the first of the parts, which are in the page's order: those that begin
// up to edge.
func (p *plan) upTo(parts []recent.Shard, edge int64) []recent.Shard {
	n := 0
	for n < len(parts) && !p.beyond(p.near(parts[n].MinTs, parts[n].MaxTs), edge) {
		n++
	}
	return parts[:n]
}
