package tables

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// TableRepair is frames of a shard of whose rows some are missing in the table, at positions above
// Lo and up to Hi, which are not above the head.
type TableRepair struct {
	Topic  *schemas.Topic
	Schema int // schema version of every frame
	Month  schemas.Month
	Shard  schemas.Shard
	Lo, Hi uint64
	// Keep, when set, holds for the rows that may come back: an erased one may not.
	Keep   Condition
	Frames []Frame
	// UUID, when set, is the table that the rows are for, as an Insert's.
	UUID string
}

// statement inserts of the frames' rows those that are not there.
func (m *TableRepair) statement(database string) string {
	keep := m.Keep.SQL
	if keep == "" {
		keep = "1"
	}
	return sql.InsertMissing{
		Table: sql.QuotedTable(database, m.Topic.Name), Columns: quotedList(m.Topic.Columns(m.Schema)),
		Month: uint32(m.Month), Shard: uint64(m.Shard), Above: m.Lo, UpTo: m.Hi,
		Frames: sourceOf(m.Topic, m.Schema, m.Frames), Whole: whole(m.Frames), Pos: colPos, Keep: keep,
		Same: sql.NewSameTable(database, m.Topic.Name, m.UUID, textReplaced),
	}.SQL()
}

// InsertMissing inserts the rows of the frames that the table lacks. It is one
// statement: a crash leaves it done or not done, and two at once are one query id
// to ClickHouse, which refuses the second with ErrBusy.
func (db *DB) InsertMissing(ctx context.Context, m *TableRepair) error {
	q := insertValues()
	q.Set("deduplicate_insert", "disable")
	q.Set("join_use_nulls", "0")
	q.Set(paramQueryID, fmt.Sprintf("almanac:%s:%s:%s:mend", db.Database, m.Topic.Name, m.Shard))
	if err := db.post(ctx, q, Condition{m.statement(db.Database), m.Keep.Params}, m.Frames); err != nil {
		return fmt.Errorf("mending positions %d to %d of %s: %w", m.Lo+1, m.Hi, schemas.PublicShardName(m.Topic.Name, m.Month, m.Shard), err)
	}
	return nil
}

// Group is what a shard has of a frame, by its position, and the sum of the ids
// (schemas.IDSumSQL).
type Group struct{ Pos, Rows, Distinct, IDs uint64 }

// Groups are a shard's rows by position, in order: none when its table was not
// made yet.
func (db *DB) Groups(ctx context.Context, ref schemas.ShardRef) ([]Group, error) {
	return db.groups(ctx, ref, "")
}

// At is what a shard has at one position.
func (db *DB) At(ctx context.Context, ref schemas.ShardRef, pos uint64) (Group, error) {
	out, err := db.groups(ctx, ref, fmt.Sprintf(" AND pos = %d", pos))
	if err != nil || len(out) == 0 {
		return Group{Pos: pos}, err
	}
	return out[0], nil
}

func (db *DB) groups(ctx context.Context, ref schemas.ShardRef, more string) ([]Group, error) {
	var out []Group
	q := fmt.Sprintf("SELECT pos AS Pos, count() AS Rows, uniqExact(id) AS Distinct, %s AS IDs FROM %s WHERE month = %d AND shard = %d%s GROUP BY pos ORDER BY pos",
		schemas.IDSumSQL, sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID), more)
	if err := db.conn.Select(ctx, &out, q); err != nil {
		if errors.Is(Refusal(err), ErrNoTable) {
			return nil, nil
		}
		return nil, fmt.Errorf("positions of %s: %w", ref, Refusal(err))
	}
	return out, nil
}

// RowKey is what tells a row from another of its shard.
type RowKey struct {
	ID  string
	Ts  int64 // unix ns
	Pos uint64
}

// RowKeys calls f with each row of a shard between two positions (above lo, up to hi).
func (db *DB) RowKeys(ctx context.Context, ref schemas.ShardRef, lo, hi uint64, f func(RowKey) error) error {
	q := fmt.Sprintf("SELECT toString(id), toUnixTimestamp64Nano(ts), pos FROM %s WHERE month = %d AND shard = %d AND pos > %d AND pos <= %d FORMAT TSV",
		sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID), lo, hi)
	err := db.Lines(ctx, &Select{SQL: q, Settings: Settings()}, func(line string) error {
		var k RowKey
		if _, err := fmt.Sscan(line, &k.ID, &k.Ts, &k.Pos); err != nil {
			return err
		}
		return f(k)
	})
	if err != nil {
		return fmt.Errorf("rows of %s: %w", ref, err)
	}
	return nil
}

// Copies counts, between two positions (above lo, up to hi), the rows that are the
// same as another in every column.
func (db *DB) Copies(ctx context.Context, ref schemas.ShardRef, lo, hi uint64) (n uint64, err error) {
	q := fmt.Sprintf("SELECT toUInt64(count() - uniqExact(sipHash128(*))) FROM %s WHERE month = %d AND shard = %d AND pos > %d AND pos <= %d",
		sql.QuotedTable(db.Database, ref.Topic), uint32(ref.Month), uint64(ref.ID), lo, hi)
	if err := db.conn.QueryRow(ctx, q).Scan(&n); err != nil {
		return 0, fmt.Errorf("copies in %s: %w", ref, Refusal(err))
	}
	return n, nil
}

// CountTwins counts the rows between two positions (above lo, up to hi) that are the same, in every column but the position,
// as one of the shard elsewhere.
func (db *DB) CountTwins(ctx context.Context, ref schemas.ShardRef, lo, hi uint64) (n uint64, err error) {
	q := sql.CountTwins{Table: sql.QuotedTable(db.Database, ref.Topic), Month: uint32(ref.Month), Shard: uint64(ref.ID), Above: lo, UpTo: hi}.SQL()
	if err := db.conn.QueryRow(ctx, q).Scan(&n); err != nil {
		return 0, fmt.Errorf("twins in %s: %w", ref, Refusal(err))
	}
	return n, nil
}

// Twins lists, of some rows of a shard, (pos, id, ts) each, at which other positions the same row stands, in every column.
func (db *DB) Twins(ctx context.Context, ref schemas.ShardRef, rows string) (map[RowKey][]uint64, error) {
	q := sql.Twins{Table: sql.QuotedTable(db.Database, ref.Topic), Month: uint32(ref.Month), Shard: uint64(ref.ID), Rows: rows}.SQL()
	out := map[RowKey][]uint64{}
	err := db.Lines(ctx, &Select{SQL: q, Settings: Settings()}, func(line string) error {
		var k RowKey
		var there uint64
		if _, err := fmt.Sscan(line, &k.ID, &k.Ts, &k.Pos, &there); err != nil {
			return err
		}
		out[k] = append(out[k], there)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("twins in %s: %w", ref, err)
	}
	return out, nil
}

// DropCopies leaves, of the rows of a shard that are the same in every column,
// one, between two positions (above lo, up to hi). A new partition is written
// beside the table and takes the old one's place in one step, so a crash leaves
// it done or not done. Rows inserted meanwhile would be lost with the old
// partition, and fields cleared meanwhile be back: when its rows have changed by the time the new one is ready, it is
// written again, until ctx ends. After dropTries of them the answer is ErrHeadMoved.
func (db *DB) DropCopies(ctx context.Context, ref schemas.ShardRef, lo, hi uint64) error {
	return whileMoved(dropTries, func() error { return db.dropCopies(ctx, ref, lo, hi) })
}

// whileMoved calls f again, so many times in all, while rows come or change that it did not see.
func whileMoved(tries int, f func() error) (err error) {
	for range tries {
		if err = f(); !errors.Is(err, ErrHeadMoved) {
			return err
		}
	}
	return err
}

// dropTries bounds how often a shard that is being written to is copied: inserts of a shard are seconds apart, and an active one is small.
const dropTries = 10

func (db *DB) dropCopies(ctx context.Context, ref schemas.ShardRef, lo, hi uint64) error {
	err := db.rewrite(ctx, ref, func(table, beside, where string) error {
		const plain = " SETTINGS deduplicate_insert = 'disable'"
		for _, q := range []string{
			fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE %s AND NOT (pos > %d AND pos <= %d)"+plain, beside, table, where, lo, hi),
			fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE %s AND pos > %d AND pos <= %d LIMIT 1 BY sipHash128(*)"+plain, beside, table, where, lo, hi),
		} {
			if err := db.conn.Exec(ctx, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("doubled rows at positions %d to %d of %s: %w", lo+1, hi, ref, Refusal(err))
	}
	return nil
}

// rewrite has a shard's partition replaced by what fill writes into a table of its own, from the rows of the shard. ErrHeadMoved: these
// changed meanwhile, and nothing was replaced.
func (db *DB) rewrite(ctx context.Context, ref schemas.ShardRef, fill func(table, beside, where string) error) error {
	table := sql.QuotedTable(db.Database, ref.Topic)
	beside := sql.QuotedTable(db.Database, secondTable(ref.Topic, ref.ID))
	where := fmt.Sprintf("month = %d AND shard = %d", uint32(ref.Month), uint64(ref.ID))
	drop := "DROP TABLE IF EXISTS " + beside + " SYNC"
	// What an earlier run left behind when it was killed goes first.
	for _, q := range []string{drop, "CREATE TABLE " + beside + " AS " + table} {
		if err := db.conn.Exec(ctx, q); err != nil {
			return err
		}
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		_ = db.conn.Exec(end, drop) // a later run drops it
	}()
	// Over all rows, whatever their parts: an update leaves their count as it is, and a merge changes nothing.
	contents := func() (sum string, err error) {
		err = db.conn.QueryRow(ctx, fmt.Sprintf("SELECT toString((count(), sum(sipHash64(*)))) FROM %s WHERE %s", table, where)).Scan(&sum)
		return sum, err
	}
	before, err := contents()
	if err != nil {
		return err
	}
	if err := fill(table, beside, where); err != nil {
		return err
	}
	after, err := contents()
	switch {
	case err != nil:
		return err
	case after != before:
		return ErrHeadMoved
	}
	return db.conn.Exec(ctx, fmt.Sprintf("ALTER TABLE %s REPLACE PARTITION ID '%s' FROM %s", table, ref.PartitionID(), beside))
}

// secondTable is where a shard is rewritten. No topic's name begins so.
func secondTable(topic string, s schemas.Shard) string {
	return "_mend_" + topic + "_" + s.String()
}

// Comment returns the comment of a topic's table, "" when there is no table.
func (db *DB) Comment(ctx context.Context, topic string) (string, error) {
	var comment string
	err := db.conn.QueryRow(ctx, "SELECT any(comment) FROM system.tables WHERE database = $1 AND name = $2", db.Database, topic).Scan(&comment)
	if err != nil {
		return "", fmt.Errorf("comment of topic %q's table: %w", topic, Refusal(err))
	}
	return comment, nil
}

// Columns are a topic's table's, in order, without those that ClickHouse computes:
// none when the table was not made yet.
func (db *DB) Columns(ctx context.Context, topic string) ([]schemas.Column, error) {
	var out []schemas.Column
	err := db.conn.Select(ctx, &out, "SELECT name AS Name, type AS Type FROM system.columns WHERE database = ? AND table = ? AND NOT (name IN (?, ?) AND default_kind = 'MATERIALIZED') AND default_kind != 'ALIAS' ORDER BY position",
		db.Database, topic, schemas.ColIdentity, kinds.ColSeries)
	if err != nil {
		return nil, fmt.Errorf("columns of topic %q: %w", topic, Refusal(err))
	}
	return out, nil
}
