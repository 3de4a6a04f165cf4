package usage

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// Positions are how far a report read each shard of its topic.
type Positions map[schemas.ShardRef]uint64

// BillsAt is Bills, of what was stored at one moment. It returns the positions of that
// moment: bills change by rows above them, and by rows that are taken out.
func (r *Reader) BillsAt(ctx context.Context, req Request, f func(Bill) error) (Positions, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	t, err := r.topic(ctx, req.Topic)
	if err != nil {
		return nil, err
	}
	var at Positions
	req.at = true
	err = r.ask(ctx, t, &req, func(s *statement) error {
		at = Positions{}
		for i := range s.snap.shards {
			if st := &s.snap.shards[i]; st.Ref.Month.Start()/1e6 < s.until {
				at[st.Ref] = max(st.Stored.Head, st.Sums.Pos)
			}
		}
		return r.bills(ctx, s, f)
	})
	return at, err
}

// DiffsAbove lists diffs that a report counts and that are stored above some positions, the
// oldest first, at most limit: what moved the bill of a space, or of what else is selected,
// since.
func (r *Reader) DiffsAbove(ctx context.Context, req Request, at Positions, limit int) ([]Diff, error) {
	if at == nil {
		at = Positions{}
	}
	req.GroupBy, req.above = Total, at
	if err := req.check(); err != nil {
		return nil, err
	}
	if limit < 1 || limit > MaxDiffs {
		return nil, fmt.Errorf("%w: limit is %d, it must be 1 to %d", schemas.ErrRequest, limit, MaxDiffs)
	}
	t, err := r.topic(ctx, req.Topic)
	if err != nil {
		return nil, err
	}
	var out []Diff
	err = r.ask(ctx, t, &req, func(s *statement) error {
		s.whole, s.past, s.days, s.expect = nil, nil, nil, 0 // rows alone
		out = nil
		return r.lines(ctx, s, s.diffs(place{}, limit), func(row []string) error {
			d, err := readDiff(row)
			out = append(out, d)
			return err
		})
	})
	return out, err
}

// sql is the condition of rows above the positions.
func (p Positions) sql() string {
	var known, above []string
	for ref, pos := range p {
		known = append(known, fmt.Sprintf("(%d,%d)", uint32(ref.Month), uint64(ref.ID)))
		above = append(above, fmt.Sprintf("(month = %d AND shard = %d AND pos > %d)", uint32(ref.Month), uint64(ref.ID), pos))
	}
	if len(known) == 0 {
		return "1"
	}
	slices.Sort(known)
	slices.Sort(above)
	return "(month, shard) NOT IN (" + strings.Join(known, ",") + ") OR " + strings.Join(above, " OR ")
}
