package fronts

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// CheckWhole is ErrLost where a front does not have what was routed from it. What is written to it then would get
// sequences that were given before, and would never be routed. topics are all topics: those of a front share its sequences.
func CheckWhole(ctx context.Context, js jetstream.JetStream, front string, topics []schemas.Topic) error {
	for i := range topics {
		name := topics[i].Name
		if topics[i].Front() != front {
			continue
		}
		routed, err := streams.Checkpoints(ctx, js, name)
		if err != nil {
			return err
		}
		misfits, err := streams.Misfits(ctx, js, name, routed)
		if err != nil {
			return err
		}
		lanes := make([]string, 0, len(misfits))
		for lane := range misfits {
			lanes = append(lanes, lane)
		}
		if slices.Sort(lanes); len(lanes) > 0 {
			return fmt.Errorf("%w: lane %s of topic %q: %s; run `almanac repair`", ErrLost, lanes[0], name, misfits[lanes[0]])
		}
	}
	return nil
}
