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

// KnownShards are the shards that any declared topic has an entry of. Entries that cannot
// be read are left out.
func (r *Registry) KnownShards(ctx context.Context) (map[schemas.Shard]bool, error) {
	all, err := r.Skipping(func(error) {}).AllShards(ctx)
	out := map[schemas.Shard]bool{}
	for i := range all {
		for j := range all[i].Shards {
			out[all[i].Shards[j].ID] = true
		}
	}
	return out, err
}
