package query

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// FreshCondition is a statement over one Fresh block of a topic's schema version:
// the numbers of the rows, from 0, for which cond is true, a UInt64 each. cond may
// name every column of the table; shard and pos are those given.
func FreshCondition(t *schemas.Topic, schema int, shard schemas.Shard, pos uint64, cond string) string {
	source := tables.FreshSource(t, schema, shard, pos, "rowNumberInAllBlocks() AS _row")
	return fmt.Sprintf("SELECT toUInt64(_row) FROM (%s) WHERE %s ORDER BY _row FORMAT RowBinary", source, cond)
}

// WaitRouted waits until everything that was accepted before the call is routed,
// at most for within, and returns how many of those events are not yet.
func (r *Reader) WaitRouted(ctx context.Context, within time.Duration) (pending uint64, err error) {
	info, err := streams.Info(ctx, r.js, schemas.StreamEvents)
	if err != nil {
		return 0, fmt.Errorf("query: %s: %w", schemas.StreamEvents, err)
	}
	topics, err := r.TopicNames(ctx)
	if err != nil {
		return 0, err
	}
	deadline := time.Now().Add(within)
	tick := time.NewTicker(storedPoll)
	defer tick.Stop()
	for {
		pending, err = r.unrouted(ctx, topics, streams.EndOf(info))
		if err != nil || pending == 0 || time.Now().After(deadline) {
			return pending, err
		}
		select {
		case <-ctx.Done():
			return pending, ctx.Err()
		case <-tick.C:
		}
	}
}
