package tables

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// PosRows is how many rows a position has, or of them so many, and the sum of their
// ids (schemas.IDSumSQL).
type PosRows struct{ Pos, Rows, IDs uint64 }

// Condition is a WHERE clause and its parameters.
type Condition struct {
	SQL    string
	Params map[string]string
}

// eraseSettings let a condition list ids by the ten thousand and keep what it
// names, a person, out of the server's query log.
var eraseSettings = map[string]string{
	"max_query_size":            "134217728",
	"max_ast_elements":          "2000000",
	"max_expanded_ast_elements": "2000000",
	"log_queries":               "0",
}

// physicalSettings show rows that were deleted and are still in a part.
var physicalSettings = map[string]string{"apply_patch_parts": "0", "apply_deleted_mask": "0"}

// Settings are those of the statements of an erasure, and more.
func Settings(more ...map[string]string) map[string]string {
	out := maps.Clone(eraseSettings)
	for _, m := range more {
		maps.Copy(out, m)
	}
	return out
}

// Matching counts the rows of some partitions that fulfil a condition, by
// position, the lowest first. Partitions without any are not in the answer.
// physical counts those too that a delete hid and no merge removed yet.
func (db *DB) Matching(ctx context.Context, topic string, in []schemas.ShardRef, c Condition, physical bool) (map[schemas.Shard][]PosRows, error) {
	out := map[schemas.Shard][]PosRows{}
	s := Settings()
	if physical {
		s = Settings(physicalSettings)
	}
	for some := range slices.Chunk(in, MaxPartitions) {
		q := fmt.Sprintf("SELECT shard, pos, count(), %s FROM %s WHERE %s AND (%s) GROUP BY shard, pos ORDER BY shard, pos FORMAT TSV",
			schemas.IDSumSQL, sql.QuotedTable(db.Database, topic), InShards(some), c.SQL)
		err := db.Lines(ctx, &Select{SQL: q, Params: c.Params, Settings: s}, func(line string) error {
			var shard, pos, rows, ids uint64
			if _, err := fmt.Sscan(line, &shard, &pos, &rows, &ids); err != nil {
				return fmt.Errorf("ClickHouse's answer is %q: %w", line, err)
			}
			out[schemas.Shard(shard)] = append(out[schemas.Shard(shard)], PosRows{pos, rows, ids})
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("counting in topic %q: %w", topic, err)
		}
	}
	return out, nil
}

// MaxPartitions bounds the partitions of one statement.
const MaxPartitions = 1000

// Hide deletes the rows of one partition that fulfil the condition, as a patch
// part: from its answer on no read sees them. A mutation would clone every part of
// the table instead.
func (db *DB) Hide(ctx context.Context, ref schemas.ShardRef, c Condition) error {
	q := fmt.Sprintf("DELETE FROM %s IN PARTITION ID '%s' WHERE %s", sql.QuotedTable(db.Database, ref.Topic), ref.PartitionID(), c.SQL)
	return db.exec(ctx, ref, &Select{SQL: q, Params: c.Params, Settings: Settings(map[string]string{"lightweight_delete_mode": "lightweight_update_force"})})
}

// Rewrite merges the parts of one partition into one without the rows that were
// hidden. The old parts are read no more; they stay on disk for the table's
// old_parts_lifetime.
func (db *DB) Rewrite(ctx context.Context, ref schemas.ShardRef) error {
	q := fmt.Sprintf("OPTIMIZE TABLE %s PARTITION ID '%s' FINAL", sql.QuotedTable(db.Database, ref.Topic), ref.PartitionID())
	return db.exec(ctx, ref, &Select{SQL: q, Settings: Settings(map[string]string{"optimize_throw_if_noop": "1", "optimize_skip_merged_partitions": "0"})})
}

// Merge makes one part of all that a shard has, which is closed. ErrBusy: a merge of
// ClickHouse's own is at work there.
func (db *DB) Merge(ctx context.Context, ref schemas.ShardRef) error {
	var parts uint64
	q := fmt.Sprintf("SELECT count() FROM system.parts WHERE database = '%s' AND table = '%s' AND partition_id = '%s' AND active", quoted(db.Database), quoted(ref.Topic), ref.PartitionID())
	if err := db.conn.QueryRow(ctx, q).Scan(&parts); err != nil {
		return fmt.Errorf("parts of %s: %w", ref, Refusal(err))
	}
	if parts < 2 {
		return nil
	}
	q = fmt.Sprintf("OPTIMIZE TABLE %s PARTITION ID '%s' FINAL", sql.QuotedTable(db.Database, ref.Topic), ref.PartitionID())
	if err := db.Change(ctx, &Select{SQL: q, Settings: Settings(map[string]string{"optimize_throw_if_noop": "1"})}); err != nil {
		return fmt.Errorf("merging %s: %w", ref, err)
	}
	return nil
}

func (db *DB) exec(ctx context.Context, ref schemas.ShardRef, s *Select) error {
	err := db.Change(ctx, s)
	if err != nil {
		return fmt.Errorf("erasing in %s: %w", ref, err)
	}
	return nil
}

// cleanupDelay is how long after its time an old part may stay: ClickHouse's thread that
// removes them rests up to max_cleanup_delay_period (300 s by default) while there was little
// to do, and up to cleanup_delay_period_random_add (10 s) more.
const cleanupDelay = 310 * time.Second

// Leftover is the old parts of a table that are unused and still on disk.
type Leftover struct {
	Parts int
	Bytes uint64
	// GoneBy is when ClickHouse has removed the last of them, by the table's
	// old_parts_lifetime, cleanupDelay and its clock.
	GoneBy time.Time
}

// Leftovers are the inactive parts of one partition that were written up to a
// time, to the second, as ClickHouse keeps it.
func (db *DB) Leftovers(ctx context.Context, ref schemas.ShardRef, upTo time.Time) (Leftover, error) {
	var out Leftover
	var parts, last, lifetime uint64
	q := sql.Leftovers{
		Database: sql.QuoteText(db.Database), Table: sql.QuoteText(ref.Topic), Partition: sql.QuoteText(ref.PartitionID()), UpTo: upTo.Unix() + 1,
	}.SQL()
	if err := db.conn.QueryRow(ctx, q).Scan(&parts, &out.Bytes, &last, &lifetime); err != nil {
		return out, fmt.Errorf("old parts of %s: %w", ref, Refusal(err))
	}
	if out.Parts = int(parts); parts > 0 {
		out.GoneBy = time.Unix(int64(last+lifetime), 0).UTC().Add(cleanupDelay)
	}
	return out, nil
}

func quoted(s string) string { return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) }

// Change runs a statement that changes rows or parts, and waits for its end.
func (db *DB) Change(ctx context.Context, s *Select) error {
	changing := *s
	changing.changes = true
	return db.Lines(ctx, &changing, func(string) error { return nil })
}

// Lines runs a read and calls f with each line of its answer.
func (db *DB) Lines(ctx context.Context, s *Select, f func(string) error) error {
	body, err := db.Select(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	return EachLine(body, func(line []byte) error { return f(strings.TrimSuffix(string(line), "\n")) })
}

// EachLine calls f with each line of an answer that is not empty, its end included.
func EachLine(answer io.Reader, f func([]byte) error) error {
	b := bufio.NewReader(answer)
	for {
		line, err := b.ReadBytes('\n')
		if len(bytes.TrimSuffix(line, []byte{'\n'})) > 0 {
			if err := f(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
