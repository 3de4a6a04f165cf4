package doctor

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/cold"
	"github.com/almanac-events/almanac/schemas"
)

// cold looks for topics whose closed shards have nowhere to move, or did not move for an hour.
func (c *check) cold(ctx context.Context, now time.Time) {
	topics, err := c.reg.Topics(ctx)
	if err != nil {
		return // the check of the registry says so
	}
	storage, err := c.db.Storage(ctx)
	if err != nil {
		c.result("cold volume", err, "let Almanac's account read system.storage_policies", "")
		return
	}
	ruled, late := 0, 0
	var first string
	for i := range topics {
		t := &topics[i]
		if t.ColdAfterDays == 0 {
			continue
		}
		ruled++
		if err := storage.CanCold(t.Name); err != nil {
			c.note("cold volume", Fail, "give almanac up a directory by cold_dir, or ClickHouse the policy of docs/operations.md; or almanac topics apply "+t.Name+" --cold-after-days 0", "%v", err)
			return
		}
		shards, err := c.reg.Shards(ctx, t.Name, 0)
		if err != nil {
			return
		}
		places, err := c.db.Places(ctx, storage, t.Name)
		if err != nil {
			c.result("cold volume", err, "", "")
			return
		}
		for _, m := range cold.Due(t, shards, places, storage.Near(t.Name), now.Add(-lateMove)) {
			if m.To == schemas.VolumeCold {
				late++
				first = m.Ref.String()
			}
		}
	}
	switch {
	case late > 0:
		c.note("cold volume", Warn, "see that a sink runs, and that the cold disk has room: the sink's log says what stops it", "%d shards should have moved, as %s", late, first)
	case ruled > 0:
		c.note("cold volume", OK, "", "%d of %d topics move closed shards there, nothing is late", ruled, len(topics))
	}
}

// lateMove is how long a move may take until it is told.
const lateMove = time.Hour
