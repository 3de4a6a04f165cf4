package registry

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Lost reports whether SHARDS contains frames of a topic (any topic if empty) that has
// no registry entry. That only happens when the bucket was lost or emptied.
func Lost(ctx context.Context, js jetstream.JetStream, topic string) (bool, error) {
	filter := schemas.SubjectsShards
	if topic != "" {
		filter = schemas.ShardsFilter(topic)
	}
	// What a client stored there may come before the first frame.
	_, err := streams.Frames(ctx, js, filter, func(schemas.ShardRef, schemas.Placed, uint64, time.Time) error { return errFrameFound })
	switch {
	case errors.Is(err, errFrameFound):
		return true, nil
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return false, nil
	}
	return false, err
}

// errFrameFound ends the search at the first frame.
var errFrameFound = errors.New("a frame was found")

// checkLost refuses a registry that has no topic, and whose copies have none, where SHARDS has frames.
func checkLost(ctx context.Context, js jetstream.JetStream) error {
	kv, err := streams.Bucket(ctx, js)
	if err == nil {
		r := &Registry{js: js, kv: kv}
		if topics, err := r.Topics(ctx); err != nil || len(topics) > 0 {
			return err
		}
		// The only topic may be on its way out, or may have gone.
		if removals, err := r.Removals(ctx); err != nil || len(removals) > 0 {
			return err
		}
	} else if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return fmt.Errorf("registry: bucket %q: %w", schemas.Bucket, err)
	}
	if kept, err := hasCopies(ctx, js); err != nil || kept {
		return err
	}
	lost, err := Lost(ctx, js, "")
	if err == nil && lost {
		err = fmt.Errorf("%w: %s holds frames, and bucket %q has no topic; run `almanac repair`, which rebuilds it from %s and ClickHouse",
			ErrLost, schemas.StreamShards, schemas.Bucket, schemas.StreamShards)
	}
	return err
}

// CreateBucket makes the bucket and that of its copies where they are missing, puts back what
// either lost, and opens the registry. Setup refuses to where SHARDS holds frames and no copy
// knows a topic: see ErrLost.
func CreateBucket(ctx context.Context, nc *nats.Conn, limits schemas.StreamLimits) (*Registry, error) {
	return makeBuckets(ctx, nc, limits, makes)
}

func makeBuckets(ctx context.Context, nc *nats.Conn, limits schemas.StreamLimits, by caller) (*Registry, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	if err := checkServer(ctx, js, by); err != nil {
		return nil, err
	}
	for _, cfg := range []jetstream.KeyValueConfig{schemas.CopiesBucket(limits), schemas.RegistryBucket(limits)} {
		if err := createBucket(ctx, js, cfg); err != nil {
			return nil, err
		}
	}
	r, err := openBy(ctx, nc, by)
	if err != nil {
		return nil, err
	}
	_, err = r.Reconcile(ctx)
	return r, err
}

// RestoreTopic writes a descriptor where there is none; ErrConflict when there is.
func (r *Registry) RestoreTopic(ctx context.Context, t schemas.Topic) error {
	return r.restore(ctx, nil, &change{key: schemas.TopicKey(t.Name), v: &t})
}

// RestoreShard writes an entry where there is none; ErrConflict when there is. With as, the topic as its caller knows it, it is
// schemas.ErrUnknownTopic once that was removed.
func (r *Registry) RestoreShard(ctx context.Context, as *schemas.Topic, s Shard) error {
	return r.restore(ctx, as, &change{key: s.key(), v: &s})
}

// restore writes what is not there: never was, or was deleted, which leaves a
// mark under the key, or is not readable.
func (r *Registry) restore(ctx context.Context, as *schemas.Topic, c *change) error {
	mark, err := streams.DecideLast(ctx, r.js, schemas.KVStream, schemas.KVSubject(c.key))
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
	case err != nil:
		return fmt.Errorf("registry: reading %s: %w", c.key, err)
	case len(mark.Data) > 0 && decode(c.key, mark.Data, reflect.New(reflect.TypeOf(c.v).Elem()).Interface()) == nil:
		return fmt.Errorf("%w: %s", ErrConflict, c.key)
	default:
		c.rev = mark.Sequence
	}
	if as == nil {
		return r.commit(ctx, c)
	}
	return r.enterWith(ctx, []string{as.Name}, map[string]int{as.Name: as.Version}, c)
}

// RestoreHead writes a head entry as it was read and changed, or a new one, as RestoreShard does;
// ErrConflict when it is another by now.
func (r *Registry) RestoreHead(ctx context.Context, as *schemas.Topic, h Head) error {
	if h.rev == 0 {
		return r.restore(ctx, as, &change{key: h.key(), v: &h})
	}
	return r.commit(ctx, &change{key: h.key(), rev: h.rev, v: &h})
}

// Correct changes a shard's entry by compare-and-set until f, on a fresh reading,
// sees nothing to change.
func (r *Registry) Correct(ctx context.Context, ref schemas.ShardRef, f func(*Shard) (changed bool)) (Shard, error) {
	return r.amend(ctx, ref, f)
}

// Remove removes an entry that is not readable, as it was listed. ErrConflict where another was
// written under its key since.
func (r *Registry) Remove(ctx context.Context, e *UnreadableError) error {
	_, err := streams.Once(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, r.kv.Purge(ctx, e.Key, jetstream.LastRevision(e.Rev))
	})
	if streams.LostRace(err) {
		return fmt.Errorf("%w: %s", ErrConflict, e.Key)
	}
	if err != nil {
		return fmt.Errorf("registry: removing %s: %w", e.Key, err)
	}
	return nil
}
