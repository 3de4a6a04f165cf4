package retention

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// clearFrames takes the events of a closed shard out of SHARDS. What stays is a
// mark: the last frame's headers without its events, so that the shard's end, its
// rows and why it is empty are known long after. No frame follows a closed shard's
// last, so nothing is lost between reading it and putting the mark behind it.
func (j *Janitor) clearFrames(ctx context.Context, e registry.Shard, why string) error {
	subject := e.Ref().Subject()
	for {
		last, err := streams.DecideLast(ctx, j.js, schemas.StreamShards, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil // a shard nothing came to
		}
		if err != nil {
			return fmt.Errorf("janitor: end of %s: %w", subject, err)
		}
		p, err := schemas.ParsePlaced(last.Header)
		if err != nil {
			return fmt.Errorf("janitor: %s message %d: %w", subject, last.Sequence, err)
		}
		record, err := j.cfg.Registry.ErasureRecord(ctx, e.Ref())
		if err != nil {
			return err
		}
		if p.Pos != e.SealedAt && !record.Stored(p.Pos, e.SealedAt) {
			return fmt.Errorf("janitor: %s: %w: it was sealed at position %d, its last frame has %d", e.Name(), ErrGap, e.SealedAt, p.Pos)
		}
		all, err := j.cfg.Registry.Ledger(ctx, e.Topic)
		if err == nil {
			err = erasure.Pin(ctx, j.cfg.Registry, e.Ref(), all.Only(ledger.Waiting))
		}
		if err != nil {
			return fmt.Errorf("janitor: %w", err)
		}
		// Before the mark, which a full stream would refuse.
		if err := j.purge(ctx, j.shards, subject, last.Sequence); err != nil {
			return err
		}
		if p.Cleared == why || p.Cleared == schemas.ClearedDropped {
			return nil
		}
		j.cfg.Crash("janitor.before-mark-frames")
		at, err := streams.Tombstone(ctx, j.js, last, why)
		if streams.LostRace(err) {
			continue // another janitor put it
		}
		if err != nil {
			return fmt.Errorf("janitor: marking the end of %s: %w", subject, err)
		}
		j.cfg.Crash("janitor.after-mark-frames")
		return j.purge(ctx, j.shards, subject, at)
	}
}
