package tables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// Derived is what is derived from a topic's rows, and from which.
type Derived struct {
	// Marks counts the rows of the table of repeats. Absent: it was not made yet.
	Marks  uint64
	Absent bool
	Shards map[schemas.ShardRef]DerivedShard
}

// DerivedShard is what is derived from a shard's rows.
type DerivedShard struct {
	Stored Stored
	// Examined is the position up to which it was looked for repeats, Repeats how many of its
	// rows are.
	Examined, Repeats uint64
	Sums              Sums
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

// Derived reads what is derived from a topic's rows. Marks are counted before positions are
// read, and these before rows: what is marked or summed meanwhile shows as a difference.
func (db *DB) Derived(ctx context.Context, t *schemas.Topic) (*Derived, error) {
	d := &Derived{Shards: map[schemas.ShardRef]DerivedShard{}}
	repeats, sums := schemas.DerivedTable(t.Name, schemas.DerivedRepeats), schemas.DerivedTable(t.Name, schemas.DerivedSums)
	err := refusal(db.conn.QueryRow(ctx, "SELECT count() FROM "+schemas.QuotedTable(db.Database, repeats)+" WHERE id != "+schemas.NoID).Scan(&d.Marks))
	if d.Absent = errors.Is(err, ErrNoTable); err != nil && !d.Absent {
		return nil, fmt.Errorf("repeats of topic %q: %w", t.Name, err)
	}
	set := func(ref schemas.ShardRef, change func(*DerivedShard)) {
		s := d.Shards[ref]
		change(&s)
		d.Shards[ref] = s
	}
	if !d.Absent {
		err := db.byShard(ctx, t.Name, "SELECT month, shard, maxIf(pos, id = "+schemas.NoID+"), uniqExactIf((id, pos), id != "+schemas.NoID+") FROM "+schemas.QuotedTable(db.Database, repeats)+" GROUP BY month, shard",
			func(ref schemas.ShardRef, n []uint64) {
				set(ref, func(s *DerivedShard) { s.Examined, s.Repeats = n[0], n[1] })
			}, 2)
		if err != nil {
			return nil, err
		}
	}
	if t.HasSums() && !d.Absent {
		err := db.byShard(ctx, t.Name, "SELECT month, shard, max(pos), sum(n), sum(repeats) FROM "+schemas.QuotedTable(db.Database, sums)+" GROUP BY month, shard",
			func(ref schemas.ShardRef, n []uint64) {
				set(ref, func(s *DerivedShard) { s.Sums = Sums{Pos: n[0], N: n[1], Repeats: n[2]} })
			}, 3)
		if err != nil && !errors.Is(err, ErrNoTable) {
			return nil, err
		}
	}
	stored, err := db.AllStored(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	for ref, st := range stored {
		set(ref, func(s *DerivedShard) { s.Stored, s.Sums.rows, s.Sums.repeats = st, st.Rows, s.Repeats })
	}
	return d, db.upTo(ctx, t, d, set)
}

// upTo counts the rows and repeats of shards up to where their sums end, where that is below
// their head.
func (db *DB) upTo(ctx context.Context, t *schemas.Topic, d *Derived, set func(schemas.ShardRef, func(*DerivedShard))) error {
	var behind []string
	for ref, s := range d.Shards {
		if s.Sums.Pos > 0 && s.Sums.Pos < s.Stored.Head {
			behind = append(behind, "("+schemas.AboveSQL(ref, 0, s.Sums.Pos)+")")
			set(ref, func(s *DerivedShard) { s.Sums.rows, s.Sums.repeats = 0, 0 })
		}
	}
	if len(behind) == 0 {
		return nil
	}
	where := " WHERE (" + strings.Join(behind, " OR ") + ")"
	err := db.byShard(ctx, t.Name, "SELECT month, shard, count() FROM "+schemas.QuotedTable(db.Database, t.Name)+where+" GROUP BY month, shard",
		func(ref schemas.ShardRef, n []uint64) { set(ref, func(s *DerivedShard) { s.Sums.rows = n[0] }) }, 1)
	if err != nil {
		return err
	}
	return db.byShard(ctx, t.Name, "SELECT month, shard, uniqExact(id, pos) FROM "+schemas.QuotedTable(db.Database, schemas.DerivedTable(t.Name, schemas.DerivedRepeats))+where+" AND id != "+schemas.NoID+" GROUP BY month, shard",
		func(ref schemas.ShardRef, n []uint64) { set(ref, func(s *DerivedShard) { s.Sums.repeats = n[0] }) }, 1)
}

// byShard runs a statement whose rows are a month, a shard and so many numbers.
func (db *DB) byShard(ctx context.Context, topic, q string, f func(schemas.ShardRef, []uint64), count int) error {
	rows, err := db.conn.Query(ctx, q)
	if err != nil {
		return fmt.Errorf("shards of topic %q: %w", topic, refusal(err))
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var month uint32
		var id uint64
		n := make([]uint64, count)
		into := []any{&month, &id}
		for i := range n {
			into = append(into, &n[i])
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		f(schemas.ShardRef{Topic: topic, Month: schemas.Month(month), ID: schemas.Shard(id)}, n)
	}
	return rows.Err()
}
