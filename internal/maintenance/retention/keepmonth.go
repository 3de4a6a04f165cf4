package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// monthPause is how long KeepMonth waits for routers and sinks before it looks again.
const monthPause = 200 * time.Millisecond

// KeepMonth drops all shards of a topic but those of one month, by the steps of retention, whatever their age, and returns how many it dropped.
// A router and sinks must be at work, which seal and close them. Where no shard comes further for so long, it returns an error.
func (j *Janitor) KeepMonth(ctx context.Context, topic string, keep schemas.Month, stall time.Duration) (dropped int, err error) {
	j.alone = true
	was, since := "", time.Now()
	for {
		topics, err := j.cfg.Registry.AllShards(ctx)
		if err != nil {
			return dropped, err
		}
		left, state := "", ""
		var failed error
		for i := range topics {
			t := &topics[i].Topic
			if t.Name != topic {
				continue
			}
			for _, e := range topics[i].Shards {
				if e.Month == keep || e.Status == registry.Dropped {
					continue
				}
				err = nil
				left, state = e.Name(), state+fmt.Sprint(e.Name(), e.Status, e.Reason)
				switch {
				case e.Status == registry.Active && e.Reason == "":
					err = j.cfg.Registry.Retire(ctx, e)
				case e.Status == registry.Closed || e.Gone():
					if err = j.drop(ctx, t, e, time.Now(), j.markOther); err == nil {
						dropped++
					}
				}
				failed = errors.Join(failed, err)
			}
		}
		if left == "" {
			return dropped, nil
		}
		if state != was {
			was, since = state, time.Now()
		} else if time.Since(since) > stall {
			return dropped, errors.Join(fmt.Errorf("janitor: %s is not of %s, and was not closed for %s", left, keep, stall), failed)
		}
		if err := backoff.Sleep(ctx, monthPause); err != nil {
			return dropped, err
		}
	}
}

// markOther marks a shard of another month than the one that is kept, whatever its age.
func (j *Janitor) markOther(ctx context.Context, ref schemas.ShardRef, seen registry.DerivedDrops, rows uint64, at time.Time) (registry.Shard, error) {
	return j.cfg.Registry.MarkDropping(ctx, ref, seen, rows, "not of the month that was restored", at)
}
