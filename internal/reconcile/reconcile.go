package reconcile

import (
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// Frame is a frame of a shard by its headers.
type Frame struct {
	Pos, Rows           uint64
	ShardRows, ShardIDs uint64 // of the shard up to and with it
}

// FrameOf reads it.
func FrameOf(p *schemas.Placed) Frame {
	return Frame{Pos: p.Pos, Rows: uint64(p.Rows), ShardRows: p.ShardRows, ShardIDs: p.ShardIDs}
}

// Stretch is positions, above Lo and up to Hi, that are compared together: those of one frame where it
// and the one before it are held.
type Stretch struct {
	Lo, Hi uint64
	// Want is the rows that frames brought and no erasure took, Have those that ClickHouse has, with
	// so many Distinct ids.
	Want, Have, Distinct uint64
	// WantIDs and HaveIDs are the sums of their ids (schemas.IDSumSQL), where Summed says that the
	// frames tell.
	WantIDs, HaveIDs uint64
	Summed           bool
}

// Same reports whether nothing says that the rows are not what the frames brought: where no sums tell,
// two rows of one id do.
func (s *Stretch) Same() bool {
	return s.Have == s.Want && (s.Summed && s.HaveIDs == s.WantIDs || !s.Summed && s.Distinct == s.Have)
}

// lacks reports whether rows are missing and nothing else is wrong that one can see.
func (s *Stretch) lacks() bool { return s.Have < s.Want && s.Distinct == s.Have }

// Rest is what stands above the last position of which anything but ClickHouse tells, up to Hi.
type Rest struct {
	Lo, Hi         uint64
	Brought        uint64 // rows up to Lo, as the frames say
	Have, Distinct uint64 // above it
}

// point is a position up to which it is known what was brought.
type point struct {
	pos, rows, ids uint64
	summed         bool
}

// points are those of some frames, in order, up to the position hi. A frame tells of the position
// before its own as well, how many rows and not which. A position that stands twice counts once.
func points(frames []Frame, hi uint64) []point {
	out := []point{{summed: true}}
	for _, f := range frames {
		last := out[len(out)-1].pos
		if f.Pos <= last {
			continue
		}
		if f.Pos > last+1 && f.Pos-1 <= hi {
			out = append(out, point{pos: f.Pos - 1, rows: f.ShardRows - min(f.ShardRows, f.Rows)})
		}
		if f.Pos > hi {
			break
		}
		out = append(out, point{f.Pos, f.ShardRows, f.ShardIDs, true})
	}
	return out
}

// Compare holds a shard's rows by position, in order, against its frames, in order: all stretches up
// to the highest position that has rows. gone is what erasures took, or will.
func Compare(frames []Frame, groups []tables.Group, gone []ledger.Cut) (all []Stretch, rest Rest) {
	if len(groups) == 0 {
		return nil, Rest{}
	}
	hi := groups[len(groups)-1].Pos
	cuts := ledger.AddCuts(gone, nil)
	taken, upTo := 0, 0 // cuts that are counted, and those that end up to the point
	before := point{summed: true}
	for _, p := range points(frames, hi)[1:] {
		for upTo < len(cuts) && cuts[upTo].Pos <= p.pos {
			upTo++
		}
		if upTo < len(cuts) && cuts[upTo].First() <= p.pos {
			continue // how much of that cut lies below is not known
		}
		s := Stretch{Lo: before.pos, Hi: p.pos, Want: p.rows - min(p.rows, before.rows), WantIDs: p.ids - before.ids, Summed: p.summed && before.summed}
		for ; taken < upTo; taken++ {
			s.Want -= min(s.Want, cuts[taken].Rows)
			s.WantIDs -= cuts[taken].IDs
		}
		for ; len(groups) > 0 && groups[0].Pos <= p.pos; groups = groups[1:] {
			s.Have, s.Distinct, s.HaveIDs = s.Have+groups[0].Rows, s.Distinct+groups[0].Distinct, s.HaveIDs+groups[0].IDs
		}
		all = append(all, s)
		before = p
	}
	rest = Rest{Lo: before.pos, Hi: hi, Brought: before.rows}
	for _, g := range groups {
		rest.Have, rest.Distinct = rest.Have+g.Rows, rest.Distinct+g.Distinct
	}
	return all, rest
}

// Differing are the stretches that are not the same. Neighbours that lack rows, and of which nothing
// else is known to be wrong, are one.
func Differing(all []Stretch) (out []Stretch) {
	for _, s := range all {
		if s.Same() {
			continue
		}
		if n := len(out) - 1; n >= 0 && out[n].Hi == s.Lo && out[n].lacks() && s.lacks() {
			b := &out[n]
			b.Hi, b.Want, b.Have, b.Distinct = s.Hi, b.Want+s.Want, b.Have+s.Have, b.Distinct+s.Distinct
			b.WantIDs, b.HaveIDs, b.Summed = b.WantIDs+s.WantIDs, b.HaveIDs+s.HaveIDs, b.Summed && s.Summed
			continue
		}
		out = append(out, s)
	}
	return out
}

// Agree is the last position up to which the rows are what the frames brought, by their sums.
func Agree(all []Stretch) (pos uint64) {
	for i := range all {
		if s := &all[i]; !s.Same() {
			break
		} else if s.Summed {
			pos = s.Hi
		}
	}
	return pos
}

// Presence is what ClickHouse has at the position of one frame.
type Presence int

// What ClickHouse has at a frame's position.
const (
	Whole  Presence = iota // its rows, less what erasures took there: none, where they took all
	Partly                 // some of its rows, and some are missing or others stand there too
	Absent                 // nothing, and not all of it was erased
	Other                  // rows, none of which is the frame's
)

// At reports what ClickHouse has at a frame's position by counts and sums, from the frame's own rows and the sum of
// their ids. Whether rows that are not the whole frame are any of its own, ids must tell: it gives
// Partly for those.
func At(pos, rows, ids uint64, there tables.Group, gone []ledger.Cut) Presence {
	var taken ledger.Cut
	for _, c := range gone {
		switch {
		case c.Pos == pos && c.First() == pos:
			taken.Rows, taken.IDs = taken.Rows+c.Rows, taken.IDs+c.IDs
		case c.First() <= pos && pos <= c.Pos && there.Rows == 0: // joined: it may have been any part of the frame
			return Whole
		}
	}
	switch {
	case there.Rows+taken.Rows == rows && there.IDs+taken.IDs == ids, there.Rows == rows && there.IDs == ids:
		return Whole // an erasure that is under way may not have taken its rows yet
	case there.Rows == 0:
		return Absent
	}
	return Partly
}
