package derived

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// State is what is derived from a topic's rows, and from which.
type State struct {
	// Marks counts the rows of the table of repeats. Absent: it was not made yet.
	Marks  uint64
	Absent bool
	Shards map[schemas.ShardRef]Progress
}

// Progress is what is derived from a shard's rows.
type Progress struct {
	Stored schemas.Stored
	// Examined is the position up to which it was looked for repeats, Repeats how many of its
	// rows are.
	Examined, Repeats uint64
	// Doubted: it has other rows or fewer marks than it had when it was examined, so that
	// Examined is 0.
	Doubted bool
	Sums    Sums
	// Series is the position up to which its series are listed.
	Series uint64

	// Epoch is that of its examinations; 0: none began.
	Epoch uint64

	rows, marks uint64 // when it was examined
}

// Sums are what a shard's sums hold, up to a position.
type Sums struct {
	Pos uint64
	// N diffs count, Repeats do not.
	N, Repeats uint64
	// rows and repeats are what the shard has up to Pos.
	rows, repeats uint64
}

// Exact reports whether the sums stand for all of the shard's rows up to their position, and
// left out all of its repeats that are marked. They are not believed when they do not. Of a
// shard whose rows retention dropped nothing is left to compare.
func (s *Sums) Exact() bool {
	return s.Pos > 0 && s.N+s.Repeats == s.rows && s.Repeats == s.repeats
}

// State reads what is derived from a topic's rows. Positions are read before rows: what is
// marked, summed or listed meanwhile shows as a difference.
func (db Tables) State(ctx context.Context, t *schemas.Topic) (*State, error) {
	listed, err := db.Listed(ctx, t)
	if err != nil {
		return nil, err
	}
	d, err := db.Marked(ctx, t)
	if err != nil {
		return nil, err
	}
	for ref, pos := range listed {
		d.set(ref, func(s *Progress) { s.Series = pos })
	}
	return d, nil
}

// Listed are the positions up to which the series of a topic's shards are listed: nil without
// such a table.
func (db Tables) Listed(ctx context.Context, t *schemas.Topic) (map[schemas.ShardRef]uint64, error) {
	out := map[schemas.ShardRef]uint64{}
	if !t.HasSeries() {
		return out, nil
	}
	listed := sql.QuotedTable(db.Database, schemas.DerivedTable(t.Name, schemas.DerivedSeries))
	err := db.EachShard(ctx, t.Name, "SELECT month, shard, max(pos) FROM "+listed+" WHERE type = '' GROUP BY month, shard",
		func(ref schemas.ShardRef, n []uint64) { out[ref] = n[0] }, 1)
	if errors.Is(err, tables.ErrNoTable) {
		return nil, nil
	}
	return out, err
}

func (d *State) set(ref schemas.ShardRef, change func(*Progress)) {
	s := d.Shards[ref]
	change(&s)
	d.Shards[ref] = s
}

// Marked is State without the list of series.
func (db Tables) Marked(ctx context.Context, t *schemas.Topic) (*State, error) {
	d := &State{Shards: map[schemas.ShardRef]Progress{}}
	repeats, sums := schemas.DerivedTable(t.Name, schemas.DerivedRepeats), schemas.DerivedTable(t.Name, schemas.DerivedSums)
	err := db.EachShard(ctx, t.Name, sql.Marked{Repeats: sql.QuotedTable(db.Database, repeats)}.SQL(),
		func(ref schemas.ShardRef, n []uint64) {
			d.Marks += n[5]
			d.set(ref, func(s *Progress) { s.Examined, s.rows, s.Repeats, s.Epoch, s.marks = n[0], n[1], n[2], n[3], n[4] })
		}, 6)
	if d.Absent = errors.Is(err, tables.ErrNoTable); err != nil && !d.Absent {
		return nil, fmt.Errorf("repeats of topic %q: %w", t.Name, err)
	}
	if t.HasSums() && !d.Absent {
		err := db.EachShard(ctx, t.Name, "SELECT month, shard, max(pos), sum(n), sum(repeats) FROM "+sql.QuotedTable(db.Database, sums)+" GROUP BY month, shard",
			func(ref schemas.ShardRef, n []uint64) {
				d.set(ref, func(s *Progress) { s.Sums = Sums{Pos: n[0], N: n[1], Repeats: n[2]} })
			}, 3)
		if err != nil && !errors.Is(err, tables.ErrNoTable) {
			return nil, err
		}
	}
	stored, err := db.AllStored(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	examined, summed := map[schemas.ShardRef]uint64{}, map[schemas.ShardRef]uint64{}
	for ref, st := range stored {
		d.set(ref, func(s *Progress) {
			s.Stored, s.Sums.rows, s.Sums.repeats = st, st.Rows, s.Repeats
			if s.Examined > 0 && (s.Epoch == 0 || s.Repeats < s.marks) || s.Examined == st.Head && s.rows != st.Rows {
				s.Examined, s.Doubted = 0, true
			} else if s.Examined != st.Head && s.Examined > 0 {
				examined[ref] = s.Examined
			}
			if s.Sums.Pos > 0 && s.Sums.Pos < st.Head {
				summed[ref] = s.Sums.Pos
			}
		})
	}
	rows, err := db.rowsUpTo(ctx, t.Name, examined)
	if err != nil {
		return nil, err
	}
	for ref := range examined {
		d.set(ref, func(s *Progress) {
			if s.Examined > s.Stored.Head || s.rows != rows[ref] {
				s.Examined, s.Doubted = 0, true
			}
		})
	}
	if rows, err = db.rowsUpTo(ctx, t.Name, summed); err != nil || len(summed) == 0 {
		return d, err
	}
	for ref := range summed {
		d.set(ref, func(s *Progress) { s.Sums.rows, s.Sums.repeats = rows[ref], 0 })
	}
	return d, db.EachShard(ctx, t.Name, "SELECT month, shard, uniqExact(id, pos) FROM "+sql.QuotedTable(db.Database, repeats)+" WHERE ("+upToSQL(summed)+") AND id != "+sql.NoID+" GROUP BY month, shard",
		func(ref schemas.ShardRef, n []uint64) { d.set(ref, func(s *Progress) { s.Sums.repeats = n[0] }) }, 1)
}

// upToSQL is the condition of the rows of shards up to positions.
func upToSQL(at map[schemas.ShardRef]uint64) string {
	var cond []string
	for ref, pos := range at {
		cond = append(cond, "("+sql.AboveSQL(ref, 0, pos)+")")
	}
	return strings.Join(cond, " OR ")
}

// rowsUpTo counts the rows of shards up to positions.
func (db Tables) rowsUpTo(ctx context.Context, topic string, at map[schemas.ShardRef]uint64) (map[schemas.ShardRef]uint64, error) {
	if len(at) == 0 {
		return nil, nil
	}
	out := map[schemas.ShardRef]uint64{}
	err := db.EachShard(ctx, topic, "SELECT month, shard, count() FROM "+sql.QuotedTable(db.Database, topic)+" WHERE "+upToSQL(at)+" GROUP BY month, shard",
		func(ref schemas.ShardRef, n []uint64) { out[ref] = n[0] }, 1)
	return out, err
}
