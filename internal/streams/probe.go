package streams

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// probeTime is how long a write may take before it counts as not happening:
// many times what a busy disk needs to sync.
const probeTime = 5 * time.Second

// Probe stores a message in the registry's bucket, which expires at once. A server whose
// disk was full or failed may answer every question and still store nothing,
// silently, until it is restarted: only a write finds out. It covers JetStream
// and the bucket. Another stream may be stuck alone, which no client can tell
// without storing an event in it.
func Probe(ctx context.Context, js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	subject := schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, nats.NewInbox()[len(nats.InboxPrefix):]))
	return store(ctx, js, subject, jetstream.WithMsgTTL(Expiring))
}

// Expiring is how long a message is kept that says that there is nothing any more: the least that NATS knows.
const Expiring = time.Second

// Stores reports, by a nil error, that JetStream stores what it is sent. It writes one
// message over the last one, so that nothing has to be purged, which a server with a
// full disk may not survive (docs/upstream.md).
func Stores(ctx context.Context, js jetstream.JetStream) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return store(ctx, js, schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, "janitor")))
}

func store(ctx context.Context, js jetstream.JetStream, subject string, opts ...jetstream.PublishOpt) error {
	_, err := Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) {
		return js.Publish(ctx, subject, []byte("{}"), opts...)
	})
	if err != nil {
		return fmt.Errorf("streams: storing a message to try it: %w", err)
	}
	return nil
}
