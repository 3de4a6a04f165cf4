package streams

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// leaderTime is how long the leaders of streams may take to answer, all at once: readiness is asked for by probes, which
// wait some two seconds. One lost answer is asked for again within it.
const leaderTime = 1500 * time.Millisecond

// Leaderless are those of some streams whose leader does not answer, where servers elect: they take and give nothing
// meanwhile. A server alone leads all of them. Where ctx ends first nothing is known, and none is named.
func Leaderless(ctx context.Context, js jetstream.JetStream, names ...string) (without []string) {
	if !schemas.Elects(js.Conn()) {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, leaderTime)
	defer cancel()
	lacks := make([]bool, len(names))
	var asked sync.WaitGroup
	for i, name := range names {
		asked.Go(func() {
			lacks[i] = lacksLeader(within, js, name)
		})
	}
	asked.Wait()
	if ctx.Err() != nil {
		return nil
	}
	for i, name := range names {
		if lacks[i] {
			without = append(without, name)
		}
	}
	return without
}

// lacksLeader asks for one of them. The server says that a stream is offline where it knows of no replica that is there.
func lacksLeader(ctx context.Context, js jetstream.JetStream, name string) bool {
	_, err := Info(ctx, js, name)
	api := (*jetstream.APIError)(nil)
	return errors.Is(err, ErrCut) || errors.As(err, &api) && api.ErrorCode == codeOffline
}
