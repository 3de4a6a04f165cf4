package usage

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
	ref schemas.ShardRef
	// gone: retention drops its rows, or did. closed: none will come any more.
	gone, closed bool
	sealedAt     uint64
	stored       tables.Stored
	examined     uint64 // position
	sums         sums
}

// sums are what a shard's sums hold, up to a position.
type sums struct {
	pos, n, repeats uint64
	// exact: as many as the shard's rows, and as its repeats, up to pos.
	exact bool
}

// quiet reports whether every row was examined: marks are then all the repeats there are.
func (s *snapshot) quiet() bool {
	for i := range s.shards {
		if s.shards[i].examined < s.shards[i].stored.Head {
			return false
		}
	}
	return !s.absent
}

// snapshot reads the positions of a topic's tables. Marks are counted before positions are
// read, and these before rows: what is marked or summed meanwhile shows as a difference.
func (r *Reader) snapshot(ctx context.Context, t *schemas.Topic) (*snapshot, error) {
	s := &snapshot{}
	entries, err := r.reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return nil, err
	}
	repeats := schemas.QuotedTable(r.db.Database, schemas.DerivedTable(t.Name, schemas.DerivedRepeats))
	err = r.db.Conn().QueryRow(ctx, "SELECT count() FROM "+repeats+" WHERE id != "+schemas.NoID).Scan(&s.marks)
	if s.absent = noTable(err); err != nil && !s.absent {
		return nil, fmt.Errorf("usage: repeats of topic %q: %w", t.Name, err)
	}
	examined, err := r.db.Examined(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	summed, err := r.summed(ctx, t)
	if err != nil {
		return nil, err
	}
	stored, err := r.db.AllStored(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		e := &entries[i]
		st := shardState{ref: e.Ref(), gone: e.Gone(), closed: e.Status == registry.Closed, sealedAt: e.SealedAt, stored: stored[e.Ref()], examined: examined[e.ID], sums: summed[e.Ref()]}
		if st.gone {
			st.stored = tables.Stored{MinTs: e.MinTs, MaxTs: e.MaxTs}
		}
		delete(stored, e.Ref())
		s.shards = append(s.shards, st)
	}
	for ref, st := range stored { // rows of a shard that was made since, or that the registry lost
		s.shards = append(s.shards, shardState{ref: ref, stored: st, examined: examined[ref.ID], sums: summed[ref]})
	}
	return s, r.compare(ctx, t, s)
}

// noTable reports whether an error says that a table was not made yet.
func noTable(err error) bool { return tables.Classify(err) == tables.Missing }

// summed reads what a topic's sums hold.
func (r *Reader) summed(ctx context.Context, t *schemas.Topic) (map[schemas.ShardRef]sums, error) {
	rows, err := r.db.Conn().Query(ctx, "SELECT month, shard, max(pos), sum(n), sum(repeats) FROM "+
		schemas.QuotedTable(r.db.Database, schemas.DerivedTable(t.Name, schemas.DerivedSums))+" GROUP BY month, shard")
	if noTable(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("usage: sums of topic %q: %w", t.Name, err)
	}
	defer func() { _ = rows.Close() }()
	out := map[schemas.ShardRef]sums{}
	for rows.Next() {
		var month uint32
		var id uint64
		var s sums
		if err := rows.Scan(&month, &id, &s.pos, &s.n, &s.repeats); err != nil {
			return nil, err
		}
		out[schemas.ShardRef{Topic: t.Name, Month: schemas.Month(month), ID: schemas.Shard(id)}] = s
	}
	return out, rows.Err()
}

// compare finds out which sums are exact.
func (r *Reader) compare(ctx context.Context, t *schemas.Topic, s *snapshot) error {
	var refs []string
	var behind []string // shards whose sums end below their head
	for i := range s.shards {
		st := &s.shards[i]
		if st.sums.pos == 0 {
			continue
		}
		cond := "(" + schemas.AboveSQL(st.ref, 0, st.sums.pos) + ")"
		refs = append(refs, cond)
		if st.sums.pos < st.stored.Head {
			behind = append(behind, cond)
		}
	}
	if len(refs) == 0 || s.absent {
		return nil
	}
	repeats, err := r.counts(ctx, t.Name, schemas.DerivedTable(t.Name, schemas.DerivedRepeats), "uniqExact(id, pos)", "id != "+schemas.NoID+" AND ", refs)
	if err != nil {
		return err
	}
	upTo, err := r.counts(ctx, t.Name, t.Name, "count()", "", behind)
	if err != nil {
		return err
	}
	for i := range s.shards {
		st := &s.shards[i]
		rows := st.stored.Rows
		if st.sums.pos < st.stored.Head {
			rows = upTo[st.ref]
		}
		switch {
		case st.sums.pos == 0:
		case st.gone:
			st.sums.exact = st.sums.pos >= st.sealedAt
		default:
			st.sums.exact = st.sums.n+st.sums.repeats == rows && st.sums.repeats == repeats[st.ref]
		}
	}
	return nil
}

// counts counts the rows of a table by shard, of shards up to positions.
func (r *Reader) counts(ctx context.Context, topic, table, count, where string, refs []string) (map[schemas.ShardRef]uint64, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	rows, err := r.db.Conn().Query(ctx, "SELECT month, shard, "+count+" FROM "+schemas.QuotedTable(r.db.Database, table)+
		" WHERE "+where+"("+strings.Join(refs, " OR ")+") GROUP BY month, shard")
	if err != nil {
		return nil, fmt.Errorf("usage: counting in %s: %w", table, err)
	}
	defer func() { _ = rows.Close() }()
	out := map[schemas.ShardRef]uint64{}
	for rows.Next() {
		var month uint32
		var id, n uint64
		if err := rows.Scan(&month, &id, &n); err != nil {
			return nil, err
		}
		out[schemas.ShardRef{Topic: topic, Month: schemas.Month(month), ID: schemas.Shard(id)}] = n
	}
	return out, rows.Err()
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
	minMs, maxMs := st.stored.MinTs/1e6, st.stored.MaxTs/1e6
	if st.gone && st.stored.MinTs > st.stored.MaxTs {
		return fromNothing, nil
	}
	if minMs >= e {
		return fromNothing, nil
	}
	if st.gone && !st.sums.exact {
		return 0, fmt.Errorf("%w: %s", ErrUnsummed, st.ref)
	}
	if !st.gone && (!sums || !st.sums.exact || st.sums.pos == 0) {
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
		if edge%dayMs != 0 && st.stored.MinTs/1e6 < edge && edge <= st.stored.MaxTs/1e6 {
			said = append(said, fmt.Errorf("%s: take %s or %s", utc(edge), utc(edge-edge%dayMs), utc(edge-edge%dayMs+dayMs)))
		}
	}
	return fmt.Errorf("%w: %w: of month %s of topic %q only days are kept: %w", schemas.ErrRequest, ErrCut, st.ref.Month, st.ref.Topic, errors.Join(said...))
}
