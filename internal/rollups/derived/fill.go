package derived

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Examined are the positions up to which a topic's shards were examined for repeats: none
// when the table was not made yet.
func (db Tables) Examined(ctx context.Context, topic string) (map[schemas.Shard]uint64, error) {
	return db.positions(ctx, topic, schemas.DerivedRepeats, "id = "+sql.NoID)
}

// Summed are the positions up to which a topic's shards are in its sums.
func (db Tables) Summed(ctx context.Context, topic string) (map[schemas.Shard]uint64, error) {
	return db.positions(ctx, topic, schemas.DerivedSums, "type = '' AND provider = '' AND space = ''")
}

// Repeats counts the rows of a topic that are marked as repeats.
func (db Tables) Repeats(ctx context.Context, topic string) (n uint64, err error) {
	q := "SELECT uniqExact(id, shard, pos) FROM " + sql.QuotedTable(db.Database, schemas.DerivedTable(topic, schemas.DerivedRepeats)) + " WHERE id != " + sql.NoID
	if err := tables.Refusal(db.Conn().QueryRow(ctx, q).Scan(&n)); err != nil && !errors.Is(err, tables.ErrNoTable) {
		return 0, fmt.Errorf("repeats of topic %q: %w", topic, err)
	}
	return n, nil
}

// positions reads the highest position of each shard of a derived table, from the rows that
// say it.
func (db Tables) positions(ctx context.Context, topic, name, where string) (map[schemas.Shard]uint64, error) {
	table := schemas.DerivedTable(topic, name)
	return db.HeadsBy(ctx, "positions of "+table, fmt.Sprintf("SELECT shard, max(pos) FROM %s WHERE %s GROUP BY shard", sql.QuotedTable(db.Database, table), where))
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
func (db Tables) derive(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, step, statement string, more map[string]string) error {
	s := maps.Clone(derivedSettings)
	maps.Copy(s, more)
	s["query_id"] = derivedPrefix(db.Database, t.Name) + step
	if err := db.Change(ctx, &tables.Select{SQL: statement, Settings: s}); err != nil {
		return fmt.Errorf("%s of %s: %w", step[:strings.IndexByte(step, ':')], ref, err)
	}
	return nil
}

// Step is a step of looking for repeats: a shard's rows above From, up to To. Epoch and
// From are those of one Shard.
type Step struct {
	Ref             schemas.ShardRef
	Epoch, From, To uint64
}

// ExamineRepeats is ExamineAll of one shard of its lane.
func (db Tables) ExamineRepeats(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, epoch, from, to uint64) error {
	return errors.Join(db.ExamineAll(ctx, t, ref.ID.Lane(), []Step{{ref, epoch, from, to}})...)
}

// ExamineAll marks the repeats which rows of some shards of a lane are or make, in whatever shard of the lane they
// stand, and then says of each shard up to where it was examined. It reads the identities of
// the lane once, however many shards there are. It may run any number of times, in any
// order, and by two at once. The errors are the shards'. When what a step says was dropped
// since, its error is tables.ErrHeadMoved: read it again.
func (db Tables) ExamineAll(ctx context.Context, t *schemas.Topic, lane int, steps []Step) []error {
	errs := make([]error, len(steps))
	fail := func(err error) []error {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	if len(steps) == 0 {
		return errs
	}
	// Statements of their own: one that writes several partitions is not stored as a whole, and
	// a position must never be there without the marks.
	again := map[string]string{"insert_deduplicate": "0"}
	name := func(s *Step) string { return fmt.Sprintf("examine:%s:%d:%d", s.Ref.ID, s.From, s.To) }
	upTo := map[schemas.ShardRef]uint64{}
	var rowsOf []string
	for i := range steps {
		s := &steps[i]
		if s.Epoch == 0 {
			s.Epoch = max(1, rand.Uint64())
			if err := db.derive(ctx, t, s.Ref, name(s)+":begin", sql.BeginExamined(t, db.Database, s.Ref, s.Epoch), again); err != nil {
				return fail(err)
			}
		}
		upTo[s.Ref] = s.To
		rowsOf = append(rowsOf, "("+sql.AboveSQL(s.Ref, s.From, s.To)+")")
	}
	// The rows are counted before: one that a repair puts among them later was not examined,
	// and shows.
	rows, err := db.rowsUpTo(ctx, t.Name, upTo)
	if err != nil {
		return fail(err)
	}
	if err := db.derive(ctx, t, steps[0].Ref, name(&steps[0]), sql.ExamineRepeats(t, db.Database, lane, strings.Join(rowsOf, " OR ")), again); err != nil {
		return fail(err)
	}
	for i := range steps {
		s := &steps[i]
		errs[i] = db.derive(ctx, t, s.Ref, name(s)+":end", sql.MarkExamined(t, db.Database, s.Ref, s.Epoch, s.To, rows[s.Ref], tables.TextHeadMoved), again)
	}
	return errs
}

// FillSums adds a shard's rows above from, up to to, to its sums, as one part. attempt counts
// fills from this position that were answered and stored nothing.
func (db Tables) FillSums(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, from, to uint64, attempt int) error {
	return db.derive(ctx, t, ref, fmt.Sprintf("sums:%s:%d", ref.ID, from), sql.FillSums(t, db.Database, ref, from, to, tables.TextHeadMoved),
		map[string]string{"insert_deduplication_token": fmt.Sprintf("%s:%s:%d:%d", schemas.DerivedTable(t.Name, schemas.DerivedSums), ref.ID, from, attempt)})
}

// FillSeries lists the series of a shard's rows above from, up to to. have is where the list
// stood when that was decided. When it was dropped or went on since, it is tables.ErrHeadMoved: read again.
func (db Tables) FillSeries(ctx context.Context, t *schemas.Topic, ref schemas.ShardRef, have, from, to uint64) error {
	return db.derive(ctx, t, ref, fmt.Sprintf("series:%s:%d", ref.ID, from), sql.FillSeries(t, db.Database, ref, have, from, to, tables.TextHeadMoved), map[string]string{"insert_deduplicate": "0"})
}

// derivedEnded waits until no statement that fills a derived table of the topic runs which
// began before: it may have read rows as they were.
func (db Tables) derivedEnded(ctx context.Context, topic string) error {
	fail := func(err error) error {
		return fmt.Errorf("waiting for what is derived from topic %q: %w", topic, tables.Refusal(err))
	}
	return db.Ended(ctx, derivedPrefix(db.Database, topic), fail)
}
