package streams

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// DialTimeout bounds the dialling of one server.
const DialTimeout = 2 * time.Second

const (
	reconnectWait = 250 * time.Millisecond
	// writeTime bounds a write that a server alone does not take: as long as JetStream gives a batch, since its disk may
	// be slow. Every other write of the connection waits with it, whatever its context.
	writeTime = batchAlone
	// syncQueueLen is how many messages one answer of a batched read may be ahead of
	// its reader: JetStream gives at most 1,024. The client makes a new queue for
	// every read, and its default of 65,536 is half a megabyte each time.
	syncQueueLen = 2048
)

// Lasting returns the options of a connection that comes back for as long as it takes.
func Lasting(name string) []nats.Option {
	return []nats.Option{
		nats.Name("almanac " + name),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait),
		nats.Timeout(DialTimeout),
		nats.FlusherTimeout(writeTime),
		schemas.Liveness,
		nats.IgnoreAuthErrorAbort(), // credentials that are refused for a while must not end a router for good
	}
}

// Connect dials NATS. An error names the server without its password.
func Connect(url string, opts ...nats.Option) (*nats.Conn, error) {
	opts = append([]nats.Option{nats.SyncQueueLen(syncQueueLen)}, opts...)
	nc, err := schemas.Connect(url, append(opts, schemas.OwnInbox, hearDenials)...)
	if err != nil {
		return nil, fmt.Errorf("NATS at %s: %w", privacy.MaskedURL(url), privacy.MaskedError(err))
	}
	return nc, nil
}
