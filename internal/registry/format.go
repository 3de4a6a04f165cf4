package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// checkFormat refuses a server on which another format is kept, before anything is read or written there. A server
// without a bucket keeps none yet.
func checkFormat(ctx context.Context, js jetstream.JetStream) error {
	s, err := streams.Open(ctx, js, schemas.KVStream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("registry: bucket %q on %s: %w", schemas.Bucket, js.Conn().ConnectedUrlRedacted(), err)
	}
	return schemas.CheckFormat(s.CachedInfo().Config.Metadata, js.Conn().ConnectedUrlRedacted())
}
