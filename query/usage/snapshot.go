package usage

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// dayMs is a day in milliseconds; in UTC every day has as many.
const dayMs = 24 * 60 * 60 * 1000

// snapshot is how far the tables were before the statement that asks them.
type snapshot struct {
	shards []shardState
	// marks counts the rows of the table of repeats; absent: it was not made yet.
	marks  uint64
	absent bool
}

// shardState is what a shard's tables hold.
type shardState struct {
	tables.DerivedShard
	ref schemas.ShardRef
	// gone: retention drops its rows, or did. closed: none will come any more.
	gone, closed bool
	exact        bool // the sums are believed
}

// quiet reports whether every row was examined: marks are then all the repeats there are.
func (s *snapshot) quiet() bool {
	for i := range s.shards {
		if s.shards[i].Examined < s.shards[i].Stored.Head {
			return false
		}
	}
	return !s.absent
}

// snapshot reads how far a topic's tables are.
func (r *Reader) snapshot(ctx context.Context, t *schemas.Topic) (*snapshot, error) {
	entries, err := r.reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return nil, err
	}
	d, err := r.db.Derived(ctx, t)
	if err != nil {
		return nil, err
	}
	s := &snapshot{marks: d.Marks, absent: d.Absent}
	for i := range entries {
		e := &entries[i]
		st := shardState{ref: e.Ref(), gone: e.Gone(), closed: e.Status == registry.Closed, DerivedShard: d.Shards[e.Ref()]}
		st.exact = st.Sums.Exact()
		if st.gone { // its rows go, or are gone: what was summed is final
			st.Stored = tables.Stored{MinTs: e.MinTs, MaxTs: e.MaxTs}
			st.exact = st.Sums.Pos > 0
			if e.DroppedRows == 0 {
				st.Stored = tables.Stored{MinTs: 1} // an erasure took all of it
			}
		}
		delete(d.Shards, e.Ref())
		s.shards = append(s.shards, st)
	}
	for ref, st := range d.Shards { // rows of a shard that was made since, or that the registry lost
		s.shards = append(s.shards, shardState{ref: ref, DerivedShard: st, exact: st.Sums.Exact()})
	}
	return s, nil
}

// from is where a shard's share of an answer comes from.
type from uint8

const (
	fromRows from = iota
	fromDays
	fromSums
	fromNothing
)

// source decides where a shard's share of the range comes from. sums says that they may be
// used where they are exact, days that every day is told apart.
func (st *shardState) source(f, e int64, sums, days bool) (from, error) {
	minMs, maxMs := st.Stored.MinTs/1e6, st.Stored.MaxTs/1e6
	if st.gone && st.Stored.MinTs > st.Stored.MaxTs {
		return fromNothing, nil
	}
	if minMs >= e {
		return fromNothing, nil
	}
	if st.gone && !st.exact {
		return 0, fmt.Errorf("%w: %s", ErrUnsummed, st.ref)
	}
	if !st.gone && (!sums || !st.exact || st.Sums.Pos == 0) {
		return fromRows, nil
	}
	inside, aligned := false, true
	for _, edge := range []int64{f, e} {
		if minMs < edge && edge <= maxMs {
			inside, aligned = true, aligned && edge%dayMs == 0
		}
	}
	switch {
	case !aligned && st.gone:
		return 0, errCutAt(st, f, e)
	case !aligned:
		return fromRows, nil
	case inside || days:
		return fromDays, nil
	}
	return fromSums, nil
}

// errCutAt names the day edges that can be answered in place of those that cannot.
func errCutAt(st *shardState, f, e int64) error {
	var said []error
	for _, edge := range []int64{f, e} {
		if edge%dayMs != 0 && st.Stored.MinTs/1e6 < edge && edge <= st.Stored.MaxTs/1e6 {
			said = append(said, fmt.Errorf("%s: take %s or %s", utc(edge), utc(edge-edge%dayMs), utc(edge-edge%dayMs+dayMs)))
		}
	}
	return fmt.Errorf("%w: %w: of month %s of topic %q only days are kept: %w", schemas.ErrRequest, ErrCut, st.ref.Month, st.ref.Topic, errors.Join(said...))
}
