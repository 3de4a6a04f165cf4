package router

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// loadCheckpoint reads the checkpoint on a routed subject and its sequence in
// SHARDS; a lane that was never routed has the zero Checkpoint and sequence 0.
func loadCheckpoint(ctx context.Context, js jetstream.JetStream, subject string) (checkpoint.Checkpoint, uint64, error) {
	at, err := streams.Checkpoint(ctx, js, subject)
	if err != nil {
		return checkpoint.Checkpoint{}, 0, fmt.Errorf("router: %w", err)
	}
	if at.Err != nil {
		return checkpoint.Checkpoint{}, 0, fmt.Errorf("router: %s: %w; run `almanac repair`", subject, at.Err)
	}
	return at.Checkpoint, at.Seq, nil
}

// checkNew refuses a lane without a checkpoint that was routed before: it has
// shards, which are never made before the first checkpoint. To begin at the front
// of EVENTS would route again what is there.
func (l *lane) checkNew(ctx context.Context) error {
	if l.evaluator.topic == nil {
		return nil
	}
	shards, err := l.cfg.Registry.Shards(ctx, l.topic, 0)
	if err != nil {
		return err
	}
	for _, s := range shards {
		if strconv.Itoa(s.ID.Lane()) == l.token {
			return fmt.Errorf("%w: %s does not have one, and the lane has shards; run `almanac repair %s`", ErrNoCheckpoint, l.routed, l.topic)
		}
	}
	return nil
}
