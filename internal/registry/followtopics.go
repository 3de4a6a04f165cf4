package registry

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// followPause is how long a follower of topics that broke rests: until then a part sees a topic at its
// own next look, which it goes on with.
const followPause = time.Second

// FollowTopics tells changed, which has room for one, once descriptors of topics were written or removed,
// until ctx ends: a part that looks for topics from time to time looks at once. It does not say which, nor
// how often.
func (r *Registry) FollowTopics(ctx context.Context, changed chan<- struct{}) {
	for {
		_ = r.followTopics(ctx, changed) // what is missed is seen at the next look
		select {
		case <-ctx.Done():
			return
		case <-time.After(followPause):
		}
	}
}

// followTopics does so until its feed breaks.
func (r *Registry) followTopics(ctx context.Context, changed chan<- struct{}) error {
	f, err := streams.Follow(ctx, r.js, schemas.KVStream, streams.Range{Filter: schemas.KVSubject(schemas.TopicKeys), LastPerSubject: true, HeadersOnly: true}, 16)
	if err != nil {
		return err
	}
	defer f.Stop()
	for {
		if _, err := f.Next(ctx); err != nil {
			return err
		}
		select {
		case changed <- struct{}{}:
		default: // it is to look anyway
		}
	}
}
