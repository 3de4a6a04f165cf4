package retention

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// noteEnds notes the end of EVENTS every Config.EndsEvery until ctx ends. A router's
// checkpoint says what was accepted up to there; above all checkpoints only this note
// does.
func (j *Janitor) noteEnds(ctx context.Context) {
	said := ""
	for range backoff.Ticks(ctx, j.cfg.EndsEvery) {
		if j.cfg.Owns != nil && !j.cfg.Owns() {
			continue
		}
		noting, end := j.outages.Bound(ctx)
		err := j.noteEnd(noting, schemas.StreamEvents)
		end()
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said: // an outage is reported once
			said = err.Error()
			j.cfg.Hooks.fault(schemas.ShardRef{}, err)
		}
	}
}

// noteEnd notes where a stream ends. Where it lost the end that was noted before, what it
// lost is noted first, for verify to name: later messages take the lost ones' sequences.
// A stream with replicas may get its end back from another, so the note stays.
func (j *Janitor) noteEnd(ctx context.Context, stream string) error {
	was, rev, err := j.cfg.Registry.End(ctx, stream)
	if err != nil && !errors.Is(err, registry.ErrUnreadable) {
		return fmt.Errorf("janitor: %w", err)
	}
	cut, why, err := j.cfg.Registry.EndCut(ctx, was)
	if err != nil {
		return fmt.Errorf("janitor: end of %s: %w", stream, err)
	}
	if why != "" {
		info, err := streams.Info(ctx, j.js, stream)
		if err != nil {
			return fmt.Errorf("janitor: %w", err)
		}
		if info.Config.Replicas > 1 {
			return fmt.Errorf("janitor: %s: %w; it has replicas, so nothing is noted until all of them are back", why, ErrEndLost)
		}
		was = was.Cut(cut)
		was.Seq = 0
	}
	now, err := streams.EndAt(ctx, j.js, was)
	if err != nil {
		return fmt.Errorf("janitor: end of %s: %w", stream, err)
	}
	if now.Seq == was.Seq && why == "" {
		return nil
	}
	if err := j.cfg.Registry.SaveEnd(ctx, now, rev); err != nil && !errors.Is(err, registry.ErrConflict) {
		return fmt.Errorf("janitor: %w", err)
	}
	if why != "" {
		j.cfg.Hooks.fault(schemas.ShardRef{}, fmt.Errorf("janitor: %s: %w: %d messages above message %d had not been routed; run `almanac verify`", why, ErrEndLost, cut.Messages, cut.After))
	}
	return nil
}
