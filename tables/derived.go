package tables

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// EnsureDerived makes the tables that are filled from the topic's, and the view that people
// select from. The topic's own table must exist.
func (db *DB) EnsureDerived(ctx context.Context, t *schemas.Topic) error {
	for _, name := range t.DerivedTables() {
		if err := db.ddl(ctx, "making table "+schemas.DerivedTable(t.Name, name), t.CreateDerived(db.Database, name)); err != nil {
			return err
		}
	}
	if !t.HasOnce() {
		return nil
	}
	view := schemas.View{Name: t.Name + schemas.ViewOnce, Select: t.OnceSelect(db.Database)}
	if err := db.ensureView(ctx, view); err != nil {
		return fmt.Errorf("view %s: %w", view.Name, refusal(err))
	}
	return nil
}

// Examined are the positions up to which a topic's shards were examined for repeats: none
// when the table was not made yet.
func (db *DB) Examined(ctx context.Context, topic string) (map[schemas.Shard]uint64, error) {
	return db.positions(ctx, topic, schemas.DerivedRepeats, "id = "+schemas.NoID)
}

// Summed are the positions up to which a topic's shards are in its sums.
func (db *DB) Summed(ctx context.Context, topic string) (map[schemas.Shard]uint64, error) {
	return db.positions(ctx, topic, schemas.DerivedSums, "type = '' AND provider = '' AND space = ''")
}

// Repeats counts the rows of a topic that are marked as repeats.
func (db *DB) Repeats(ctx context.Context, topic string) (n uint64, err error) {
	q := "SELECT uniqExact(id, shard, pos) FROM " + schemas.QuotedTable(db.Database, schemas.DerivedTable(topic, schemas.DerivedRepeats)) + " WHERE id != " + schemas.NoID
	if err := refusal(db.conn.QueryRow(ctx, q).Scan(&n)); err != nil && !errors.Is(err, ErrNoTable) {
		return 0, fmt.Errorf("repeats of topic %q: %w", topic, err)
	}
	return n, nil
}

// positions reads the highest position of each shard of a derived table, from the rows that
// say it.
func (db *DB) positions(ctx context.Context, topic, name, where string) (map[schemas.Shard]uint64, error) {
	q := fmt.Sprintf("SELECT shard, max(pos) FROM %s WHERE %s GROUP BY shard", schemas.QuotedTable(db.Database, schemas.DerivedTable(topic, name)), where)
	rows, err := db.conn.Query(ctx, q)
	if err = refusal(err); errors.Is(err, ErrNoTable) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("positions of %s: %w", schemas.DerivedTable(topic, name), err)
	}
	defer func() { _ = rows.Close() }()
	out := map[schemas.Shard]uint64{}
	for rows.Next() {
		var s, pos uint64
		if err := rows.Scan(&s, &pos); err != nil {
			return nil, err
		}
		out[schemas.Shard(s)] = pos
	}
	return out, rows.Err()
}

// derivedSettings make a statement that fills one block, however many rows it has, and let it
// write into any number of partitions.
var derivedSettings = map[string]string{
	"async_insert":                    "0",
	"max_insert_threads":              "1",
	"min_insert_block_size_rows":      "40000000",
	"min_insert_block_size_bytes":     "4000000000",
	"max_insert_block_size":           "40000000",
	"max_partitions_per_insert_block": "0",
	"deduplicate_insert_select":       "enable_when_possible",
	"compile_expressions":             "0",
	// Which granules of a part match is not to be remembered: what a condition means changes
	// with the rows that its subqueries read, though its text and the part stay.
	"use_query_condition_cache": "0",
}

// derivedPrefix begins the query_id of every statement that fills a derived table of a topic.
func derivedPrefix(database, topic string) string {
	return "almanac-derived:" + database + ":" + topic + ":"
}

// derive runs one statement that fills a derived table. As with Insert, only the table's own
// position tells what is stored.
func (db *DB) derive(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, step, statement string, more map[string]string) error {
	s := maps.Clone(derivedSettings)
	maps.Copy(s, more)
	s["query_id"] = derivedPrefix(db.Database, t.Name) + step
	if err := db.lines(ctx, &Select{SQL: statement, Settings: s}, func(string) error { return nil }); err != nil {
		return fmt.Errorf("%s of %s: %w", step[:strings.IndexByte(step, ':')], ref, err)
	}
	return nil
}

// ExamineRepeats marks the repeats which a shard's rows above from, up to to, are or make, in
// whatever shard they stand, and then says that the shard was examined up to to. It may run
// any number of times, in any order, and by two at once. epoch and from are those of one
// DerivedShard. When what they say was dropped since, it is ErrHeadMoved: read them again.
func (db *DB) ExamineRepeats(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, epoch, from, to uint64) error {
	step := fmt.Sprintf("examine:%s:%d:%d", ref.ID, from, to)
	// Two statements: one that writes several partitions is not stored as a whole, and the
	// position must never be there without the marks.
	//
	if epoch == 0 {
		epoch = max(1, rand.Uint64())
		if err := db.derive(ctx, t, ref, step+":begin", t.BeginExamined(db.Database, ref, epoch), map[string]string{"insert_deduplicate": "0"}); err != nil {
			return err
		}
	}
	// The rows are counted before: one that a repair puts among them later was not examined,
	// and shows.
	rows, err := db.rowsUpTo(ctx, t.Name, map[schemas.ShardRef]uint64{ref: to})
	if err != nil {
		return err
	}
	if err := db.derive(ctx, t, ref, step, t.ExamineRepeats(db.Database, ref, from, to), map[string]string{"insert_deduplicate": "0"}); err != nil {
		return err
	}
	return db.derive(ctx, t, ref, step+":end", t.MarkExamined(db.Database, ref, epoch, to, rows[ref], textHeadMoved), map[string]string{"insert_deduplicate": "0"})
}

// FillSums adds a shard's rows above from, up to to, to its sums, as one part. attempt counts
// fills from this position that were answered and stored nothing.
func (db *DB) FillSums(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, from, to uint64, attempt int) error {
	return db.derive(ctx, t, ref, fmt.Sprintf("sums:%s:%d", ref.ID, from), t.FillSums(db.Database, ref, from, to, textHeadMoved),
		map[string]string{"insert_deduplication_token": fmt.Sprintf("%s:%s:%d:%d", schemas.DerivedTable(t.Name, schemas.DerivedSums), ref.ID, from, attempt)})
}

// FillSeries lists the series of a shard's rows above from, up to to. have is where the list
// stood when that was decided. When it was dropped or went on since, it is ErrHeadMoved: read again.
func (db *DB) FillSeries(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, have, from, to uint64) error {
	return db.derive(ctx, t, ref, fmt.Sprintf("series:%s:%d", ref.ID, from), t.FillSeries(db.Database, ref, have, from, to, textHeadMoved), map[string]string{"insert_deduplicate": "0"})
}

// DropSeries drops a shard's list of series, whose rows are gone.
func (db *DB) DropSeries(ctx context.Context, ref schemas.ShardRef) error {
	return db.dropDerived(ctx, ref, schemas.DerivedSeries)
}

// DropSums drops a shard's sums; they are filled again.
func (db *DB) DropSums(ctx context.Context, ref schemas.ShardRef) error {
	return db.dropDerived(ctx, ref, schemas.DerivedSums)
}

// DropDerived drops what was derived from a shard's rows, which have changed: its sums, its
// series, its repeats, and those of other shards whose event that counts is one of this shard. It returns
// when no statement is under way that has read the rows as they were. All of it is derived
// again. A topic without derived tables has nothing to drop.
func (db *DB) DropDerived(ctx context.Context, ref schemas.ShardRef) error {
	state, err := db.TableState(ctx, schemas.DerivedTable(ref.Topic, schemas.DerivedRepeats))
	if err != nil || !state.Exists {
		return err
	}
	if err := db.derivedEnded(ctx, ref.Topic); err != nil {
		return err
	}
	refs, err := db.countedIn(ctx, ref)
	if err != nil {
		return err
	}
	for _, r := range refs {
		// The sums first: without them a reader takes the rows, and without the repeats it
		// looks for them itself.
		for _, name := range []string{schemas.DerivedSums, schemas.DerivedSeries, schemas.DerivedRepeats} {
			if err := db.dropDerived(ctx, r, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// DropAllDerived empties what was derived from a topic's rows, of which a rebuild may have
// brought others. All of it is derived again.
func (db *DB) DropAllDerived(ctx context.Context, t *schemas.Topic) error {
	if err := db.derivedEnded(ctx, t.Name); err != nil {
		return err
	}
	for _, name := range []string{schemas.DerivedSums, schemas.DerivedSeries, schemas.DerivedRepeats} {
		table := schemas.DerivedTable(t.Name, name)
		if err := db.ddl(ctx, "emptying table "+table, "TRUNCATE TABLE IF EXISTS "+schemas.QuotedTable(db.Database, table)); err != nil {
			return err
		}
	}
	return nil
}

// countedIn lists a shard and those that have repeats of its events.
func (db *DB) countedIn(ctx context.Context, ref schemas.ShardRef) ([]schemas.ShardRef, error) {
	q := fmt.Sprintf("SELECT DISTINCT month, shard FROM %s WHERE first_month = %d AND first_shard = %d AND NOT (month = %d AND shard = %d)",
		schemas.QuotedTable(db.Database, schemas.DerivedTable(ref.Topic, schemas.DerivedRepeats)), uint32(ref.Month), uint64(ref.ID), uint32(ref.Month), uint64(ref.ID))
	rows, err := db.conn.Query(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("repeats of %s: %w", ref, refusal(err))
	}
	defer func() { _ = rows.Close() }()
	out := []schemas.ShardRef{ref}
	for rows.Next() {
		var month uint32
		var id uint64
		if err := rows.Scan(&month, &id); err != nil {
			return nil, err
		}
		out = append(out, schemas.ShardRef{Topic: ref.Topic, Month: schemas.Month(month), ID: schemas.Shard(id)})
	}
	return out, rows.Err()
}

func (db *DB) dropDerived(ctx context.Context, ref schemas.ShardRef, name string) error {
	table := schemas.DerivedTable(ref.Topic, name)
	q := fmt.Sprintf("ALTER TABLE %s DROP PARTITION (%d, %d)", schemas.QuotedTable(db.Database, table), uint32(ref.Month), uint64(ref.ID))
	if err := refusal(db.conn.Exec(ctx, q)); err != nil && !errors.Is(err, ErrNoTable) {
		return fmt.Errorf("dropping %s of %s: %w", table, ref, err)
	}
	return nil
}

// derivedEnded waits until no statement that fills a derived table of the topic runs which
// began before: it may have read rows as they were.
func (db *DB) derivedEnded(ctx context.Context, topic string) error {
	fail := func(err error) error {
		return fmt.Errorf("waiting for what is derived from topic %q: %w", topic, refusal(err))
	}
	var at int64
	if err := db.conn.QueryRow(ctx, "SELECT toUnixTimestamp64Micro(now64(6))").Scan(&at); err != nil {
		return fail(err)
	}
	q := fmt.Sprintf("SELECT count() FROM system.processes WHERE startsWith(query_id, '%s') AND toUnixTimestamp64Micro(now64(6)) - toInt64(elapsed * 1e6) <= %d",
		derivedPrefix(db.Database, topic), at)
	return db.none(ctx, q, fail)
}

// none waits until a count is 0.
func (db *DB) none(ctx context.Context, q string, fail func(error) error) error {
	tick := time.NewTicker(freezePoll)
	defer tick.Stop()
	for {
		var n uint64
		if err := db.conn.QueryRow(ctx, q).Scan(&n); err != nil {
			return fail(err)
		}
		if n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fail(ctx.Err())
		case <-tick.C:
		}
	}
}
