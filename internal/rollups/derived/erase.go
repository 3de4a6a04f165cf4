package derived

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// notMark leaves out the rows that say how far sums reach: no diff is without a space.
const notMark = "space != ''"

// SumsMatching counts, by shard, the diffs and repeats that the sums which fulfil a condition
// stand for. Shards without any are not in the answer.
func (db Tables) SumsMatching(ctx context.Context, topic string, in []schemas.ShardRef, c tables.Condition) (map[schemas.Shard]uint64, error) {
	out := map[schemas.Shard]uint64{}
	for some := range slices.Chunk(in, tables.MaxPartitions) {
		q := fmt.Sprintf("SELECT shard, sum(n) + sum(repeats) FROM %s WHERE %s AND %s AND (%s) GROUP BY shard FORMAT TSV",
			sql.QuotedTable(db.Database, schemas.DerivedTable(topic, schemas.DerivedSums)), tables.InShards(some), notMark, c.SQL)
		err := db.Lines(ctx, &tables.Select{SQL: q, Params: c.Params, Settings: tables.Settings()}, func(line string) error {
			var shard, diffs uint64
			if _, err := fmt.Sscan(line, &shard, &diffs); err != nil {
				return fmt.Errorf("ClickHouse's answer is %q: %w", line, err)
			}
			out[schemas.Shard(shard)] = diffs
			return nil
		})
		if err = tables.Refusal(err); err != nil && !errors.Is(err, tables.ErrNoTable) {
			return nil, fmt.Errorf("counting in sums of topic %q: %w", topic, err)
		}
	}
	return out, nil
}

// EraseSums takes the rows that fulfil a condition out of the sums of a shard whose rows
// retention dropped, and its marks, which nothing reads any more. It may run any number of
// times, and twice at once.
//
// The rows are named by a table in memory, and there by keyed hashes: a mutation stays on the
// server's disk for a while and would keep the condition, which names a person, and a process
// that dies leaves the table until the server starts again or it is found abandoned.
func (db Tables) EraseSums(ctx context.Context, ref schemas.ShardRef, c tables.Condition) error {
	name := schemas.DerivedTable(ref.Topic, schemas.DerivedSums)
	sums := sql.QuotedTable(db.Database, name)
	row := fmt.Sprintf("sipHash128Keyed((toUInt64(%d), toUInt64(%d)), type, provider, space, user_id)", rand.Uint64(), rand.Uint64())
	err := db.WithStepTable(ctx, name, "(row FixedString(16)) ENGINE = Memory", func(keys string) error {
		q := fmt.Sprintf("INSERT INTO %s SELECT DISTINCT "+row+" FROM %s WHERE month = %d AND shard = %d AND %s AND (%s)", keys, sums, uint32(ref.Month), uint64(ref.ID), notMark, c.SQL)
		naming := &tables.Select{SQL: q, Params: c.Params, Settings: tables.Settings()}
		if err := db.Change(ctx, naming); err != nil {
			return fmt.Errorf("erasing in sums of %s: %w", ref, err)
		}
		q = fmt.Sprintf("ALTER TABLE %s DELETE IN PARTITION (%d, %d) WHERE "+row+" IN (SELECT row FROM %s) SETTINGS mutations_sync = 2", sums, uint32(ref.Month), uint64(ref.ID), keys)
		return db.DDL(ctx, fmt.Sprintf("erasing in sums of %s", ref), q)
	})
	if err != nil {
		return err
	}
	return db.dropDerived(ctx, ref, schemas.DerivedRepeats)
}
