package derived

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Dropper knows of which shards of a topic retention dropped the rows, or is dropping them: the sums are
// all that stays of those. The registry's is registry.DerivedDropper.
type Dropper interface {
	// While runs drop with those shards. None is added to them while drop runs, nor after it
	// before what it dropped is derived again.
	While(ctx context.Context, drop func(ctx context.Context, gone map[schemas.ShardRef]bool) error) error
}

// DropSeries drops a shard's list of series, whose rows are gone.
func (db Tables) DropSeries(ctx context.Context, ref schemas.ShardRef) error {
	return db.dropDerived(ctx, ref, schemas.DerivedSeries)
}

// DropSums drops a shard's sums; they are filled again. Those of a shard that retention dropped
// stay.
func (db Tables) DropSums(ctx context.Context, ref schemas.ShardRef, dropper Dropper) error {
	return dropper.While(ctx, func(ctx context.Context, gone map[schemas.ShardRef]bool) error {
		if gone[ref] {
			return nil
		}
		return db.dropDerived(ctx, ref, schemas.DerivedSums)
	})
}

// Drop drops what was derived from a shard's rows, which have changed: its sums, its
// series, its repeats, and those of other shards whose event that counts is one of this shard. It returns
// when no statement is under way that has read the rows as they were. All of it is derived
// again. A topic without derived tables has nothing to drop.
//
// What cannot be derived again stays: all of shards that retention dropped, and the marks of
// copies whose event that counts was in one. The marks of the shard's rows that are gone go.
func (db Tables) Drop(ctx context.Context, ref schemas.ShardRef, dropper Dropper) error {
	return db.dropOne(ctx, ref, dropper, func(other schemas.ShardRef) bool { return other != ref })
}

// DropDoubted is Drop of a shard of which rows may be lost and come back: the marks of
// those stay too, when the event that counts was in a shard that retention dropped.
func (db Tables) DropDoubted(ctx context.Context, ref schemas.ShardRef, dropper Dropper) error {
	return db.dropOne(ctx, ref, dropper, func(schemas.ShardRef) bool { return true })
}

// dropOne is Drop. lost says of which shards rows may come back.
func (db Tables) dropOne(ctx context.Context, ref schemas.ShardRef, dropper Dropper, lost func(schemas.ShardRef) bool) error {
	state, err := db.TableState(ctx, schemas.DerivedTable(ref.Topic, schemas.DerivedRepeats))
	if err != nil || !state.Exists {
		return err
	}
	return dropper.While(ctx, func(ctx context.Context, gone map[schemas.ShardRef]bool) error {
		if gone[ref] {
			return nil
		}
		if err := db.derivedEnded(ctx, ref.Topic); err != nil {
			return err
		}
		refs, err := db.countedIn(ctx, ref)
		if err != nil {
			return err
		}
		return db.dropAllOf(ctx, ref.Topic, refs, gone, lost)
	})
}

// DropAll empties what was derived from a topic's rows, of which a rebuild may have
// brought others. All of it is derived again; what cannot be stays, as in Drop.
func (db Tables) DropAll(ctx context.Context, t *schemas.Topic, dropper Dropper) error {
	return dropper.While(ctx, func(ctx context.Context, gone map[schemas.ShardRef]bool) error {
		if err := db.derivedEnded(ctx, t.Name); err != nil {
			return err
		}
		there := map[schemas.ShardRef]bool{}
		for _, name := range t.DerivedTables() {
			q := "SELECT DISTINCT month, shard FROM " + sql.QuotedTable(db.Database, schemas.DerivedTable(t.Name, name))
			err := db.EachShard(ctx, t.Name, q, func(ref schemas.ShardRef, _ []uint64) { there[ref] = true }, 0)
			if err != nil && !errors.Is(err, tables.ErrNoTable) {
				return err
			}
		}
		return db.dropAllOf(ctx, t.Name, slices.Collect(maps.Keys(there)), gone, func(schemas.ShardRef) bool { return false })
	})
}

// dropAllOf drops what was derived from the rows of some shards, but for those that are gone and
// the marks that cannot be made again.
//
// A statement that notes how far a shard was examined, or its series are listed, asserts that what
// came before is there, and may be stored after that was dropped. So it waits for those under way,
// and drops again what has a position.
func (db Tables) dropAllOf(ctx context.Context, topic string, refs []schemas.ShardRef, gone map[schemas.ShardRef]bool, lost func(schemas.ShardRef) bool) error {
	refs = slices.DeleteFunc(refs, func(ref schemas.ShardRef) bool { return gone[ref] })
	for len(refs) > 0 {
		for _, ref := range refs {
			if err := db.dropOf(ctx, ref, gone, lost(ref)); err != nil {
				return err
			}
		}
		if err := db.derivedEnded(ctx, topic); err != nil {
			return err
		}
		examined, err := db.Examined(ctx, topic)
		if err != nil {
			return err
		}
		listed, err := db.positions(ctx, topic, schemas.DerivedSeries, "type = ''")
		if err != nil {
			return err
		}
		refs = slices.DeleteFunc(refs, func(ref schemas.ShardRef) bool { return examined[ref.ID] == 0 && listed[ref.ID] == 0 })
	}
	return nil
}

// dropOf drops what was derived from the rows of a shard, as dropAllOf does.
func (db Tables) dropOf(ctx context.Context, ref schemas.ShardRef, gone map[schemas.ShardRef]bool, lost bool) error {
	// The sums first: without them a reader takes the rows, and without the repeats it
	// looks for them itself.
	for _, name := range []string{schemas.DerivedSums, schemas.DerivedSeries} {
		if err := db.dropDerived(ctx, ref, name); err != nil {
			return err
		}
	}
	return db.dropMarks(ctx, ref, gone, lost)
}

// dropMarks drops a shard's marks and how far it was examined, but for the marks that cannot be
// made again: of rows that are there or, when rows may be lost, of any.
func (db Tables) dropMarks(ctx context.Context, ref schemas.ShardRef, gone map[schemas.ShardRef]bool, lost bool) error {
	firsts, err := db.firstsIn(ctx, ref, gone)
	if err != nil {
		return err
	}
	if len(firsts) == 0 {
		return db.dropDerived(ctx, ref, schemas.DerivedRepeats)
	}
	name := schemas.DerivedTable(ref.Topic, schemas.DerivedRepeats)
	repeats, month, shard := sql.QuotedTable(db.Database, name), uint32(ref.Month), uint64(ref.ID)
	stay := fmt.Sprintf("month = %d AND shard = %d AND id != %s AND (first_month, first_shard) IN (%s)", month, shard, sql.NoID, strings.Join(firsts, ","))
	if !lost {
		stay += fmt.Sprintf(" AND (id, pos) IN (SELECT id, pos FROM %s WHERE month = %d AND shard = %d)", sql.QuotedTable(db.Database, ref.Topic), month, shard)
	}
	return db.WithStepTable(ctx, name, "AS "+repeats, func(kept string) error {
		if err := db.DDL(ctx, fmt.Sprintf("keeping marks of %s", ref), fmt.Sprintf("INSERT INTO %s SELECT * FROM %s WHERE %s", kept, repeats, stay)); err != nil {
			return err
		}
		var n uint64
		if err := tables.Refusal(db.Conn().QueryRow(ctx, "SELECT count() FROM "+kept).Scan(&n)); err != nil {
			return fmt.Errorf("marks of %s that stay: %w", ref, err)
		}
		if n == 0 { // ClickHouse refuses to replace a partition by nothing
			return db.dropDerived(ctx, ref, schemas.DerivedRepeats)
		}
		// At once, as a partition is dropped: an examination under way finds all of it or nothing.
		return db.DDL(ctx, fmt.Sprintf("dropping %s of %s", name, ref), fmt.Sprintf("ALTER TABLE %s REPLACE PARTITION (%d, %d) FROM %s", repeats, month, shard, kept))
	})
}

// firstsIn lists, of the shards that are gone, those in which events that count were of which
// a shard has copies; as tuples for SQL.
func (db Tables) firstsIn(ctx context.Context, ref schemas.ShardRef, gone map[schemas.ShardRef]bool) (tuples []string, err error) {
	if len(gone) == 0 {
		return nil, nil
	}
	q := fmt.Sprintf("SELECT DISTINCT first_month, first_shard FROM %s WHERE month = %d AND shard = %d AND id != %s",
		sql.QuotedTable(db.Database, schemas.DerivedTable(ref.Topic, schemas.DerivedRepeats)), uint32(ref.Month), uint64(ref.ID), sql.NoID)
	err = db.EachShard(ctx, ref.Topic, q, func(first schemas.ShardRef, _ []uint64) {
		if gone[first] {
			tuples = append(tuples, fmt.Sprintf("(%d,%d)", uint32(first.Month), uint64(first.ID)))
		}
	}, 0)
	return tuples, err
}

// countedIn lists a shard and those that have repeats of its events, which are of its lane.
func (db Tables) countedIn(ctx context.Context, ref schemas.ShardRef) ([]schemas.ShardRef, error) {
	q := fmt.Sprintf("SELECT DISTINCT month, shard FROM %s WHERE %s AND first_month = %d AND first_shard = %d AND NOT (month = %d AND shard = %d)",
		sql.QuotedTable(db.Database, schemas.DerivedTable(ref.Topic, schemas.DerivedRepeats)), sql.InLane(ref.ID.Lane()), uint32(ref.Month), uint64(ref.ID), uint32(ref.Month), uint64(ref.ID))
	out := []schemas.ShardRef{ref}
	return out, db.EachShard(ctx, ref.Topic, q, func(other schemas.ShardRef, _ []uint64) { out = append(out, other) }, 0)
}

func (db Tables) dropDerived(ctx context.Context, ref schemas.ShardRef, name string) error {
	table := schemas.DerivedTable(ref.Topic, name)
	q := fmt.Sprintf("ALTER TABLE %s DROP PARTITION (%d, %d)", sql.QuotedTable(db.Database, table), uint32(ref.Month), uint64(ref.ID))
	if err := tables.Refusal(db.Conn().Exec(ctx, q)); err != nil && !errors.Is(err, tables.ErrNoTable) {
		return fmt.Errorf("dropping %s of %s: %w", table, ref, err)
	}
	return nil
}
