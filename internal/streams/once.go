package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Once asks NATS for a change that must not be asked for twice. It bounds the wait:
// nats.go waits as long as ctx, when that has an end. ErrCut when no answer came, and
// then it is not known whether the change was made.
func Once[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	asked, done := bounded(ctx)
	answer, err := ask(asked)
	return answer, unanswered(ctx, done(err))
}

// How long Delete rests after it overwrote a message: NATS writes the whole block that the
// message lies in again, up to 8 MiB, and syncs it (eraseMsg of its file store, 2.15). Without
// rests the writers and readers of all streams on the disk wait behind that.
const (
	pauseTimes = 2 // as long as the removal took
	maxPause   = 200 * time.Millisecond
)

// Delete removes a message, and overwrites it on disk where secure says so. A message
// that does not exist is removed.
func Delete(ctx context.Context, js jetstream.JetStream, s jetstream.Stream, seq uint64, secure bool) error {
	del := s.DeleteMsg
	if secure {
		del = s.SecureDeleteMsg
	}
	began := time.Now()
	_, err := Asked(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, del(ctx, seq) })
	if err == nil && secure {
		select {
		case <-ctx.Done(): // the caller's next step says so
		case <-time.After(min(pauseTimes*time.Since(began), maxPause)):
		}
	}
	if err == nil || errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	// nats.go gives the server's answer as text alone.
	if _, look := DecideAt(ctx, js, s.CachedInfo().Config.Name, seq); errors.Is(look, jetstream.ErrMsgNotFound) {
		return nil
	}
	return fmt.Errorf("streams: removing message %d of %s: %w", seq, s.CachedInfo().Config.Name, err)
}

// Purge removes all messages of a subject filter from a stream.
func Purge(ctx context.Context, js jetstream.JetStream, stream, filter string) error {
	s, err := Open(ctx, js, stream)
	if err != nil {
		return fmt.Errorf("streams: purging %s of %s: %w", filter, stream, err)
	}
	return PurgeWith(ctx, s, filter)
}

// PurgeWith removes the messages of a subject filter, by more options of the server's:
// below a sequence, or all but the last. To ask for it twice does no harm.
func PurgeWith(ctx context.Context, s jetstream.Stream, filter string, more ...jetstream.StreamPurgeOpt) error {
	opts := append([]jetstream.StreamPurgeOpt{jetstream.WithPurgeSubject(filter)}, more...)
	if _, err := Asked(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, s.Purge(ctx, opts...) }); err != nil {
		return fmt.Errorf("streams: purging %s of %s: %w", filter, s.CachedInfo().Config.Name, err)
	}
	return nil
}

// Bucket opens the registry's bucket.
func Bucket(ctx context.Context, js jetstream.JetStream) (jetstream.KeyValue, error) {
	return Asked(ctx, func(ctx context.Context) (jetstream.KeyValue, error) { return js.KeyValue(ctx, schemas.Bucket) })
}
