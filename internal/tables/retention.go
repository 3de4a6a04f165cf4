package tables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// DropShard drops a shard's partition: its rows are gone with the answer. A
// partition or a table that is not there is no error.
//
// With the partition ClickHouse forgets its insert tokens, so that an insert which
// set out before could bring rows back: the caller has written the floor, and
// looks again later.
func (db *DB) DropShard(ctx context.Context, ref schemas.ShardRef) error {
	q := fmt.Sprintf("ALTER TABLE %s DROP PARTITION ID '%s'", sql.QuotedTable(db.Database, ref.Topic), ref.PartitionID())
	if err := Refusal(db.conn.Exec(ctx, q)); err != nil && !errors.Is(err, ErrNoTable) {
		return fmt.Errorf("dropping %s: %w", ref, err)
	}
	return nil
}

// ClearFields clears fields (named as schemas.Anonymise has them) in every row of
// a shard, first for all readers, then on disk, and returns when no row that a
// part holds has one. Ids, times, positions and counts stay. It may run any number
// of times, and twice at once.
//
// It writes a patch part and merges it into the shard's parts, one rewrite of that
// partition alone: a mutation would clone every part of the table. The parts it
// replaces stay on disk, unread, for old_parts_lifetime (see the table's DDL).
func (db *DB) ClearFields(ctx context.Context, t *schemas.Topic, m schemas.Month, s schemas.Shard, fields []string) error {
	set, left := sql.Clear(t, fields)
	table, partition := sql.QuotedTable(db.Database, t.Name), schemas.PartitionID(m, s)
	fail := func(err error) error {
		return fmt.Errorf("clearing %s of %s: %w", strings.Join(fields, ", "), schemas.PublicShardName(t.Name, m, s), err)
	}
	uncleared := func() (n uint64, err error) {
		// On disk: as if no patch were there.
		q := fmt.Sprintf("SELECT count() FROM %s WHERE month = %d AND shard = %d AND (%s) SETTINGS apply_patch_parts = 0", table, uint32(m), uint64(s), left)
		err = Refusal(db.conn.QueryRow(ctx, q).Scan(&n))
		return n, err
	}
	n, err := uncleared()
	if errors.Is(err, ErrNoTable) {
		return nil
	}
	if err != nil || n == 0 {
		if err != nil {
			err = fail(err)
		}
		return err
	}
	if err := db.conn.Exec(ctx, fmt.Sprintf("UPDATE %s SET %s IN PARTITION ID '%s' WHERE %s", table, set, partition, left)); err != nil {
		return fail(Refusal(err))
	}
	for range rewrites {
		q := fmt.Sprintf("OPTIMIZE TABLE %s PARTITION ID '%s' FINAL SETTINGS optimize_throw_if_noop = 1", table, partition)
		if err := db.conn.Exec(ctx, q); err != nil {
			return fail(Refusal(err))
		}
		if n, err = uncleared(); err != nil {
			return fail(err)
		}
		if n == 0 {
			return nil
		}
	}
	return fail(fmt.Errorf("not cleared yet: %d rows still have them on disk, since a merge that began before is still under way; the next round clears them", n))
}

// rewrites bounds how often a shard is rewritten at once. One is enough, unless a
// merge that began before the update is still under way: then OPTIMIZE may answer
// with that one (seen once in a dozen runs that clear twice).
const rewrites = 3
