package pool

import (
	"context"
	"time"
)

// storingEvery is how often a request under way asks whether anything can be stored.
const storingEvery = time.Second

// WhileStoring gives up as soon as storing says why nothing can be stored: a server whose disk is
// full may answer nothing, and the request would wait for its whole time. stop ends it.
func WhileStoring(ctx context.Context, storing func() error, giveUp context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(storingEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := storing(); err != nil {
					giveUp(err)
					return
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
