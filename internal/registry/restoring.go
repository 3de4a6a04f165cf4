package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// restoringBytes bounds the stream that says that a restore is under way: it takes no messages, and servers may demand a bound.
const restoringBytes = 1024

// Restoring is which backup is being restored into a server, and whether the restored bucket is there; empty: none.
func Restoring(ctx context.Context, js jetstream.JetStream) (of string, bucket bool, err error) {
	for _, name := range []string{schemas.KVStream, schemas.StreamRestoring} {
		s, err := streams.Open(ctx, js, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return "", false, fmt.Errorf("registry: whether a restore was begun: %w", err)
		}
		if of = schemas.RestoringOf(s.CachedInfo().Config.Metadata); of != "" {
			return of, name == schemas.KVStream, nil
		}
	}
	return "", false, nil
}

// BeginRestore says on a server that a backup is being restored into it. Until EndRestore every part refuses the server (schemas.ErrRestoring).
// The bucket is to come with schemas.MarkRestoring: parts look at it alone where it is there.
func BeginRestore(ctx context.Context, js jetstream.JetStream, of string, replicas int) error {
	cfg := jetstream.StreamConfig{
		Name: schemas.StreamRestoring, Subjects: []string{schemas.SubjectRestoring}, Description: "Almanac: a restore is under way",
		Storage: jetstream.FileStorage, MaxBytes: restoringBytes, Replicas: max(replicas, 1), Metadata: map[string]string{},
	}
	schemas.MarkRestoring(cfg.Metadata, of)
	_, err := streams.Asked(ctx, js.Conn(), func(ctx context.Context) (jetstream.Stream, error) { return js.CreateStream(ctx, cfg) })
	if err != nil {
		return fmt.Errorf("registry: saying that a restore begins: %w", err)
	}
	return nil
}

// EndRestore takes back what BeginRestore said, from the bucket last. It may be called again.
func EndRestore(ctx context.Context, js jetstream.JetStream) error {
	if err := streams.Discard(ctx, js, schemas.StreamRestoring); err != nil {
		return fmt.Errorf("registry: saying that a restore ended: %w", err)
	}
	s, err := streams.Open(ctx, js, schemas.KVStream)
	if err != nil {
		return fmt.Errorf("registry: bucket %q: %w", schemas.Bucket, err)
	}
	cfg := s.CachedInfo().Config
	schemas.UnmarkRestoring(cfg.Metadata)
	if _, err := streams.Asked(ctx, js.Conn(), func(ctx context.Context) (jetstream.Stream, error) { return js.UpdateStream(ctx, cfg) }); err != nil {
		return fmt.Errorf("registry: saying that a restore ended: %w", err)
	}
	return nil
}

// SetupRestored is Setup for the restore that is under way.
func SetupRestored(ctx context.Context, nc *nats.Conn, limits schemas.StreamLimits) (*Registry, error) {
	return setup(ctx, nc, limits, theRestore)
}

// OpenRestored is Open for the restore that is under way, and its parts.
func OpenRestored(ctx context.Context, nc *nats.Conn) (*Registry, error) {
	return openBy(ctx, nc, theRestore)
}
