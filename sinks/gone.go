package sinks

import (
	"context"
	"errors"
	"reflect"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// gone reports whether a shard left with its topic, which was removed: neither the registry nor SHARDS has anything of it.
// Retention leaves a message and an entry, and a lost stream or bucket leaves the other.
func (s *Sinks) gone(ctx context.Context, ref schemas.ShardRef) bool {
	if _, err := s.cfg.Registry.Shard(ctx, ref); !errors.Is(err, registry.ErrNotFound) {
		return false
	}
	if _, err := streams.DecideLast(ctx, s.js, schemas.StreamShards, ref.Subject()); !errors.Is(err, jetstream.ErrMsgNotFound) {
		return false
	}
	s.forget(ref.Topic)
	return true
}

// followTopics forgets what is known of a topic once its descriptor was changed or removed: the name may be another topic's by then.
func (s *Sinks) followTopics(ctx context.Context) {
	changed := make(chan struct{}, 1)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { s.cfg.Registry.FollowTopics(ctx, changed) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed:
			s.forgetOthers(ctx)
		}
	}
}

// forgetOthers forgets the topics that the registry has no longer, or has otherwise.
func (s *Sinks) forgetOthers(ctx context.Context) {
	topics, err := s.cfg.Registry.Topics(ctx)
	if err != nil {
		return // a table that is not there, and a newer version, are noticed all the same
	}
	now := map[string]*schemas.Topic{}
	for i := range topics {
		now[topics[i].Name] = &topics[i]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.topics {
		if !reflect.DeepEqual(now[name], t.topic) {
			delete(s.topics, name)
		}
	}
}
