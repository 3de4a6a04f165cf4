package registry

import (
	"context"

	"github.com/almanac-events/almanac/schemas"
)

// TopicShards is a topic with the entries of all its shards.
type TopicShards struct {
	Topic  schemas.Topic
	Shards []Shard
}

// AllShards lists every topic with its shards.
func (r *Registry) AllShards(ctx context.Context) ([]TopicShards, error) {
	topics, err := r.Topics(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]TopicShards, len(topics))
	for i, t := range topics {
		entries, err := r.Shards(ctx, t.Name, 0)
		if err != nil {
			return nil, err
		}
		all[i] = TopicShards{t, entries}
	}
	return all, nil
}
