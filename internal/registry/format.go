package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// caller tells the restore itself, which works on what is not whole yet, from parts that open a registry and those that would make one.
type caller int

const (
	opens caller = iota
	makes
	theRestore
)

// checkServer refuses a server on which another format is kept, or a restore has not ended, before anything is read or written there.
// A server without a bucket does not keep a format yet.
func checkServer(ctx context.Context, js jetstream.JetStream, by caller) error {
	server := js.Conn().ConnectedUrlRedacted()
	s, err := streams.Open(ctx, js, schemas.KVStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if by == theRestore {
			return nil
		}
		// The bucket is restored last.
		of, err := streams.Open(ctx, js, schemas.StreamRestoring)
		if errors.Is(err, jetstream.ErrStreamNotFound) || by == opens && errors.Is(err, streams.ErrDenied) { // which finds no bucket then
			return nil
		}
		if err != nil {
			return fmt.Errorf("registry: whether a restore was begun on %s: %w", server, err)
		}
		return schemas.CheckRestored(of.CachedInfo().Config.Metadata, server)
	}
	if err != nil {
		return fmt.Errorf("registry: bucket %q on %s: %w", schemas.Bucket, server, err)
	}
	if by == theRestore {
		return schemas.CheckFormat(s.CachedInfo().Config.Metadata, server)
	}
	return schemas.CheckBucket(s.CachedInfo().Config.Metadata, server)
}
