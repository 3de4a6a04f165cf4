package registry

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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
	return decideFormat(s.CachedInfo().Config.Metadata, js.Conn().ConnectedUrlRedacted())
}

// decideFormat compares the number that a bucket has with that of this Almanac.
func decideFormat(metadata map[string]string, server string) error {
	if got, ok := schemas.FormatOf(metadata); ok && got != strconv.Itoa(schemas.Format) {
		return fmt.Errorf("%w: NATS at %s has format %q, this Almanac reads format %d: run the Almanac that made it, or give this one a NATS and a ClickHouse of its own",
			schemas.ErrFormat, server, got, schemas.Format)
	}
	return nil
}
