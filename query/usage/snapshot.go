package usage

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// dayMs is a day in milliseconds; in UTC every day has as many.
const dayMs = 24 * 60 * 60 * 1000

// snapshot is how far the tables were before the statement that asks them.
type snapshot struct {
	*once.Snapshot
	shards []shardState
}

// shardState is what a shard's tables hold.
type shardState struct {
	once.Shard
	exact bool // the sums are believed
}

// snapshot reads how far a topic's tables are. rows says that only rows are asked for: where
// all shards have theirs, what is derived from them is not looked at.
func (r *Reader) snapshot(ctx context.Context, t *schemas.Topic, rows bool) (*snapshot, error) {
	read, err := r.shards(ctx, t, rows)
	if err != nil {
		return nil, err
	}
	s := &snapshot{Snapshot: read, shards: make([]shardState, len(read.Shards))}
	for i, sh := range read.Shards {
		st := shardState{Shard: sh, exact: sh.Sums.Exact()}
		if e := &sh.Entry; sh.Gone { // its rows go, or are gone: what was summed is final
			st.Stored = schemas.Stored{MinTs: e.MinTs, MaxTs: e.MaxTs}
			st.exact = st.Sums.Pos > 0
			if e.DroppedRows == 0 {
				st.Stored = schemas.Stored{MinTs: 1} // an erasure took all of it
			}
		}
		s.shards[i] = st
	}
	return s, nil
}

// shards reads how far a topic's tables are, or which shards it has alone.
func (r *Reader) shards(ctx context.Context, t *schemas.Topic, alone bool) (*once.Snapshot, error) {
	if !alone {
		return once.Read(ctx, r.reg, r.db, t)
	}
	entries, err := r.reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return nil, err
	}
	if len(registry.DroppedOf(entries)) > 0 { // of these the sums are asked for
		return once.Read(ctx, r.reg, r.db, t)
	}
	s := &once.Snapshot{Topic: t, Database: r.db.Database, Absent: true}
	for i := range entries {
		s.Shards = append(s.Shards, once.Shard{Ref: entries[i].Ref(), Entry: entries[i], Closed: entries[i].Status == registry.Closed})
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
// used where they are exact, days that every day is told apart, instant that one is asked for. f and e are the
// range in milliseconds; it ends before e.
func (st *shardState) source(f, e int64, sums, days, instant bool) (from, error) {
	minMs, maxMs := st.Stored.MinTs/1e6, st.Stored.MaxTs/1e6
	if st.Gone && st.Stored.MinTs > st.Stored.MaxTs {
		return fromNothing, nil
	}
	if minMs >= e {
		return fromNothing, nil
	}
	if st.Gone && !st.exact {
		return 0, fmt.Errorf("%w: %s", ErrUnsummed, st.Ref)
	}
	if !st.Gone && (!sums || !st.exact || st.Sums.Pos == 0) {
		return fromRows, nil
	}
	inside, aligned := false, true
	for _, edge := range []int64{f, e} {
		if minMs < edge && edge <= maxMs {
			inside, aligned = true, aligned && edge%dayMs == 0
		}
	}
	switch {
	case !aligned && st.Gone:
		return 0, errCutAt(st, f, e, instant)
	case !aligned:
		return fromRows, nil
	case inside || days:
		return fromDays, nil
	}
	return fromSums, nil
}

// errCutAt names the day edges that can be answered in place of those that cannot. An instant is the millisecond
// before an edge.
func errCutAt(st *shardState, f, e int64, instant bool) error {
	if instant {
		day := e - e%dayMs
		return fmt.Errorf("%w: %w: of month %s of topic %q only days are kept, and %s lies in one: take %s or %s", schemas.ErrRequest, ErrCut, st.Ref.Month, st.Ref.Topic, utc(e-1), utc(day-1), utc(day+dayMs-1))
	}
	var said []error
	for _, edge := range []int64{f, e} {
		if edge%dayMs != 0 && st.Stored.MinTs/1e6 < edge && edge <= st.Stored.MaxTs/1e6 {
			said = append(said, fmt.Errorf("%s: take %s or %s", utc(edge), utc(edge-edge%dayMs), utc(edge-edge%dayMs+dayMs)))
		}
	}
	return fmt.Errorf("%w: %w: of month %s of topic %q only days are kept: %w", schemas.ErrRequest, ErrCut, st.Ref.Month, st.Ref.Topic, errors.Join(said...))
}
