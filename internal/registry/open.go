package registry

import (
	"context"

	"github.com/almanac-events/almanac/schemas"
)

// Open is which shards of topics are active: frames may be added to them.
func (r *Registry) Open(ctx context.Context, topics []schemas.Topic) (map[schemas.Shard]bool, error) {
	open := map[schemas.Shard]bool{}
	for i := range topics {
		heads, err := r.Heads(ctx, topics[i].Name)
		if err != nil {
			return nil, err
		}
		for _, h := range heads {
			for _, id := range h.Active {
				open[id] = true
			}
			for id := range h.Retired {
				open[id] = true
			}
		}
	}
	return open, nil
}
