package fronts

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// CheckWhole is ErrLost where a front does not have what was routed from it. What is written to it then would get
// sequences that were given before, and would never be routed. topics are all topics: those of a front share its sequences.
func CheckWhole(ctx context.Context, js jetstream.JetStream, front string, topics []schemas.Topic) error {
	for i := range topics {
		t := &topics[i]
		if t.Front() != front {
			continue
		}
		routed, err := streams.Checkpoints(ctx, js, t.Name)
		if err != nil {
			return err
		}
		misfits, err := streams.Misfits(ctx, js, t, routed)
		if err != nil {
			return err
		}
		lanes := make([]string, 0, len(misfits))
		for lane := range misfits {
			lanes = append(lanes, lane)
		}
		if slices.Sort(lanes); len(lanes) > 0 {
			return fmt.Errorf("%w: lane %s of topic %q: %s; run `almanac repair`", ErrLost, lanes[0], t.Name, misfits[lanes[0]])
		}
	}
	return nil
}

// CheckCopies is ErrLost where a front does not have what the copies of its lanes' checkpoints saw, which know more than the
// checkpoints: SHARDS lost those with its end, or all of them. Routers wait too, for the repair that writes them again.
func CheckCopies(ctx context.Context, js jetstream.JetStream, front string, topics []schemas.Topic, copies func(ctx context.Context, topic string) (map[string]checkpoint.Checkpoint, error)) error {
	for i := range topics {
		t := &topics[i]
		if t.Front() != front {
			continue
		}
		known, err := copies(ctx, t.Name)
		if err != nil {
			return err
		}
		routed, err := streams.Checkpoints(ctx, js, t.Name)
		if err != nil {
			return err
		}
		for n := range t.Lanes {
			lane := strconv.Itoa(n)
			cp, copied := routed[lane], known[lane]
			if copied.Front != front || !cp.Forgets(&copied) {
				continue
			}
			why, err := streams.Misfit(ctx, js, copied.LaneFilter(t, lane), &copied)
			if err != nil {
				return err
			}
			if why != "" {
				return fmt.Errorf("%w: lane %s of topic %q: %s; run `almanac repair`", ErrLost, lane, t.Name, cp.BothLost(&copied, why))
			}
		}
	}
	return nil
}
