package router

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// fit compares EVENTS with the checkpoint, and moves the checkpoint to where the
// lane goes on when EVENTS lost its end. What was routed up to the old end is safe
// in SHARDS; what came since has sequences that were given before. Which message is
// which is told by when it was stored (checkpoint.Checkpoint.Resume). Where that does
// not tell, where SHARDS may be what was restored, and where another replica may
// still have what this one lost, the lane stops.
func (l *lane) fit(ctx context.Context) error {
	why, err := streams.Misfit(ctx, l.js, l.filter, &l.cp)
	if err != nil || why == "" {
		return err
	}
	if l.front != "" { // a front that lost records lost documents or timers with them
		return fmt.Errorf("%w: %s; run `almanac repair %s`", ErrRolledBack, why, l.topic)
	}
	info, err := streams.Info(ctx, l.js, schemas.StreamEvents) // as it is now: copies may be given while a router runs
	if err != nil {
		return err
	}
	if info.Config.Replicas > 1 {
		return fmt.Errorf("%w: %s; it has replicas, so nothing is changed: run `almanac repair %s` once all of them are back", ErrRolledBack, why, l.topic)
	}
	r, err := streams.Resume(ctx, l.js, l.filter, &l.cp, l.cfg.Registry.Taken)
	if err != nil {
		return err
	}
	if !r.Proven {
		return fmt.Errorf("%w: %s; run `almanac repair %s`", ErrRolledBack, why, l.topic)
	}
	if len(r.Doubt) > 0 {
		return fmt.Errorf("%w: %s; whether message %d, and %d more, were routed before is not proven: run `almanac repair %s`",
			ErrRolledBack, why, r.Doubt[0].Seq, len(r.Doubt)-1, l.topic)
	}
	l.cp = l.cp.Recut(r.After, r.Digest, r.Stored, r.Cut)
	l.cfg.Hooks.fault(l.topic, l.token, fmt.Errorf("router: %w: %s; the lane goes on after message %d, %d messages between %d and %d had not been routed and are gone; what was above %d left no trace",
		ErrCutOff, why, r.After, r.Cut.Messages, r.Cut.After, r.Cut.To, r.Cut.To))
	return nil
}
