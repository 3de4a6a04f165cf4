package streams

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Once asks NATS for a change that must not be asked for twice. It bounds the wait:
// nats.go waits as long as ctx, when that has an end. ErrCut when no answer came, and
// then it is not known whether the change was made.
func Once[T any](ctx context.Context, ask func(context.Context) (T, error)) (T, error) {
	asked, done := bounded(ctx, silence)
	answer, err := ask(asked)
	return answer, unanswered(ctx, done(err))
}

// Bucket opens the registry's bucket.
func Bucket(ctx context.Context, js jetstream.JetStream) (jetstream.KeyValue, error) {
	return Asked(about(ctx, js, "STREAM.INFO."+schemas.KVStream), js.Conn(), func(ctx context.Context) (jetstream.KeyValue, error) { return js.KeyValue(ctx, schemas.Bucket) })
}
