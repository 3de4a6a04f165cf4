package faults

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// outageLooks is how often freshness is looked at.
const outageLooks = 250 * time.Millisecond

// Outage watches how old the newest event of the lane that is furthest behind is in ClickHouse.
type Outage struct{ longest atomic.Int64 }

// Longest is the worst there was.
func (o *Outage) Longest() time.Duration { return time.Duration(o.longest.Load()) }

// watch looks until ctx ends. While ClickHouse does not answer, what it last said gets older.
func (o *Outage) watch(ctx context.Context, h *Cluster) {
	newest := time.Now()
	for backoff.Sleep(ctx, outageLooks) == nil {
		// A lane with nothing in a quarter of an hour counts as that old.
		from := time.Now().Add(-15 * time.Minute)
		n, err := h.SQL.Number(ctx, "SELECT toUInt64(if(count() < %d, %d, min(newest))) FROM (SELECT user_id, max(toUnixTimestamp64Nano(ts)) AS newest FROM %s"+
			" WHERE service = '%s' AND ts >= fromUnixTimestamp64Nano(%d) AND ts <= now64(9) GROUP BY user_id)", users, from.UnixNano(), Topic, Service, from.UnixNano())
		if at := time.Unix(0, int64(n)); err == nil && at.After(newest) {
			newest = at
		}
		if age := int64(time.Since(newest)); age > o.longest.Load() && ctx.Err() == nil {
			o.longest.Store(age)
		}
	}
}
