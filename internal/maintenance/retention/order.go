package retention

import (
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// waits reports whether a shard is dropped after others: of a topic with a front the shards of a lane
// go in the order in which they were filled. So what is stored of a key is never without its newest
// version, which alone tells that the key was removed or is retention's. A shard of an earlier month that was made
// after this one had ended has nothing older: a writer whose clock stands still would keep all others for good.
func waits(t *schemas.Topic, e *registry.Shard, all []registry.Shard) bool {
	if t.Front() == "" || e.Gone() {
		return false
	}
	return slices.ContainsFunc(all, func(o registry.Shard) bool {
		if o.ID.Lane() != e.ID.Lane() || o.Gone() || registry.Compare(o, *e) >= 0 {
			return false
		}
		return o.Month == e.Month || !e.Precedes(&o)
	})
}
