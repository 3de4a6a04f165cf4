package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// fillShardRows is a full shard's rows.
const fillShardRows = schemas.DefaultRotateRows

// fill puts rows into the topic's table, in shards of their own, without the
// pipeline: what was there before. They lie in this month, before now.
func fill(ctx context.Context, cfg *Config, topic *schemas.Topic, rows int) error {
	return fillFrom(ctx, cfg, topic, 0, rows)
}

// fillFrom is fill for a table that was filled up to first.
func fillFrom(ctx context.Context, cfg *Config, topic *schemas.Topic, first, rows int) error {
	now := time.Now().UnixNano()
	month := schemas.MonthOf(now)
	step := max(1, (now-month.Start())/int64(first+rows+1))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cfg.Inserts)
	for from := first; from < first+rows; from += fillShardRows {
		n := min(fillShardRows, first+rows-from)
		g.Go(func() error {
			cfg.Progress("filling", from-first, rows)
			q := fmt.Sprintf(`INSERT INTO %s (ts, id, level, service, type, user_id, message, duration_ms, endpoint, month, shard, pos)
SELECT fromUnixTimestamp64Nano(%d + toInt64(number) * %d, 'UTC'), generateUUIDv7(number), 'info', 'bench', 'view', concat('u-', toString(number %% 1000)),
 concat('request served from cache ', toString(number)), number %% 4096 / 16, '/api/v1/item', %d, %d, intDiv(number - %d, 2000) + 1
FROM numbers(%d, %d) SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 100000, min_insert_block_size_rows = 2500000, min_insert_block_size_bytes = 1000000000`,
				sql.QuotedTable(cfg.DB.Database, topic.Name), month.Start(), step, uint32(month), fillFirstShard+from, from, from, n)
			if err := cfg.DB.Conn().Exec(ctx, q); err != nil {
				return fmt.Errorf("filling %s: %w", topic.Name, err)
			}
			return nil
		})
	}
	return g.Wait()
}

// fillFirstShard and the number of its first row is a filled shard's own number:
// far from the small ones of the ceiling, and the pipeline's are random.
const fillFirstShard = 1 << 40
