package streams

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go"
)

// Outages ends what waits for NATS when the connection to it is lost. The answers
// that were under way never come, and the client does not say so: who waits for
// one would wait as long as he would for a slow server, and every event behind
// him as long. What happened is found out by asking again.
type Outages struct {
	nc     *nats.Conn
	status chan nats.Status

	mu   sync.Mutex
	lost chan struct{} // closed by the next outage
}

// NewOutages watches a connection from now on; Follow tells of what it sees.
func NewOutages(nc *nats.Conn) *Outages {
	return &Outages{nc: nc, status: nc.StatusChanged(nats.RECONNECTING, nats.CLOSED), lost: make(chan struct{})}
}

// Follow watches the connection until ctx ends.
func (o *Outages) Follow(ctx context.Context) {
	defer o.nc.RemoveStatusListener(o.status)
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-o.status:
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

// Bound is ctx until the next outage, whose cause is then ErrDisconnected. The
// caller must call the function it gets.
func (o *Outages) Bound(ctx context.Context) (context.Context, context.CancelFunc) {
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
