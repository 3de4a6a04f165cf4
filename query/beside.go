package query

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// beside is a reader's second connection, for what is read ahead of queries: a NATS
// server answers a connection's direct reads one after the other, so those that wait
// for a batch of SHARDS would hold up the reads of EVENTS. It is opened when it is
// first needed, and closed when the reader is no longer used.
type beside struct {
	mu sync.Mutex
	nc *nats.Conn
	r  *Reader
}

// reader is r on the second connection: what it learns is r's.
func (b *beside) reader(ctx context.Context, r *Reader) (*Reader, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.r != nil && !b.nc.IsClosed() {
		return b.r, nil
	}
	if r.dir.nc.IsClosed() {
		return nil, nats.ErrConnectionClosed
	}
	opts := r.dir.nc.Opts
	opts.RetryOnFailedConnect = false
	// These tell of the first, and some programs end with it.
	opts.ConnectedCB, opts.ClosedCB, opts.DisconnectedErrCB, opts.ReconnectedCB = nil, nil, nil, nil
	opts.AsyncErrorCB, opts.ReconnectErrCB, opts.DiscoveredServersCB, opts.LameDuckModeHandler = nil, nil, nil, nil
	opts.DisconnectedCB = nil // deprecated, and may be set
	nc, err := opts.Connect()
	if err != nil {
		return nil, err
	}
	own := *r
	if own.js, err = jetstream.New(nc); err == nil {
		err = own.openStreams(ctx)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	b.nc, b.r = nc, &own
	return b.r, nil
}

func (b *beside) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nc != nil {
		b.nc.Close()
		b.nc, b.r = nil, nil
	}
}

// openStreams looks the two streams up.
func (r *Reader) openStreams(ctx context.Context) (err error) {
	if r.events, err = streams.Open(ctx, r.js, schemas.StreamEvents); err != nil {
		return fmt.Errorf("query: stream %s: %w", schemas.StreamEvents, err)
	}
	if r.shards, err = streams.Open(ctx, r.js, schemas.StreamShards); err != nil {
		return fmt.Errorf("query: stream %s: %w", schemas.StreamShards, err)
	}
	return nil
}
