package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// loadCheckpoint reads a lane's checkpoint and its sequence in SHARDS; a lane
// nobody routed yet has the zero Checkpoint and sequence 0.
func loadCheckpoint(ctx context.Context, shards jetstream.Stream, topic, lane string) (schemas.Checkpoint, uint64, error) {
	msg, err := shards.GetLastMsgForSubject(ctx, schemas.RoutedSubject(topic, lane))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return schemas.Checkpoint{}, 0, nil
	}
	if err != nil {
		return schemas.Checkpoint{}, 0, fmt.Errorf("router: checkpoint of %s lane %s: %w", topic, lane, err)
	}
	cp, err := schemas.ParseCheckpoint(msg.Data)
	if err != nil {
		return cp, 0, fmt.Errorf("router: %s lane %s: %w", topic, lane, err)
	}
	return cp, msg.Sequence, nil
}

// checkSource compares EVENTS with the checkpoint. The janitor keeps the last
// message of every subject and nothing older than it must, so a missing message
// is only suspicious above the stream's end.
func checkSource(ctx context.Context, events jetstream.Stream, cp schemas.Checkpoint) error {
	if cp.Source == 0 {
		return nil
	}
	info, err := events.Info(ctx)
	if err != nil {
		return fmt.Errorf("router: EVENTS: %w", err)
	}
	if info.State.LastSeq < cp.Source {
		return fmt.Errorf("%w: its last message is %d, the checkpoint stands at %d", ErrRolledBack, info.State.LastSeq, cp.Source)
	}
	msg, err := events.GetMsg(ctx, cp.Source)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil // purged
	}
	if err != nil {
		return fmt.Errorf("router: EVENTS message %d: %w", cp.Source, err)
	}
	if d := digestOf(msg.Data); d != cp.Digest {
		return fmt.Errorf("%w: message %d is %s, the checkpoint saw %s", ErrRolledBack, cp.Source, d, cp.Digest)
	}
	return nil
}
