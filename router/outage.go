package router

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
)

// outages ends the lanes' runs when the connection to NATS is lost. The answers
// that were under way never come, and the client does not say so: a run would
// wait CommitTimeout for its batch's, and every event behind it as long. The next
// run finds out from the checkpoint what happened.
type outages struct {
	mu   sync.Mutex
	lost chan struct{} // closed by the next outage
}

func newOutages() *outages { return &outages{lost: make(chan struct{})} }

// follow watches the connection until ctx ends.
func (o *outages) follow(ctx context.Context, nc *nats.Conn) {
	status := nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer nc.RemoveStatusListener(status)
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-status:
			if !ok {
				return
			}
			o.mu.Lock()
			close(o.lost)
			o.lost = make(chan struct{})
			o.mu.Unlock()
		}
	}
}

// bound is ctx until the next outage.
func (o *outages) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	o.mu.Lock()
	lost := o.lost
	o.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-lost:
			cancel(ErrDisconnected)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
