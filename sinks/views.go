package sinks

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// maxViewPause is the longest from one attempt to make a topic's views to the next: what
// ClickHouse refuses is often for a person to mend, and costs two statements an attempt.
const maxViewPause = 10 * time.Minute

// views knows the topics whose views ClickHouse refused, and when to try again.
type views struct {
	mu      sync.Mutex
	missing map[string]attempt // by topic: at most as many as there are topics
}

// attempt is the last one to make a topic's views.
type attempt struct {
	due    time.Time
	failed int
}

// after returns the attempt that follows a at now: about least later, twice as late each time.
func (a attempt) after(now time.Time, least time.Duration) attempt {
	return attempt{due: now.Add(backoff.After(a.failed+1, least, maxViewPause, rand.Float64())), failed: a.failed + 1}
}

// ensureViews makes the topic's views, and notes when to try again where they are refused.
func (s *Sinks) ensureViews(ctx context.Context, t *schemas.Topic) {
	err := s.cfg.DB.EnsureViews(ctx, t)
	if ctx.Err() != nil {
		return
	}
	s.views.mu.Lock()
	defer s.views.mu.Unlock()
	if err == nil {
		delete(s.views.missing, t.Name)
		return
	}
	if s.views.missing == nil {
		s.views.missing = map[string]attempt{}
	}
	s.views.missing[t.Name] = s.views.missing[t.Name].after(time.Now(), s.cfg.Housekeeping)
	s.cfg.Hooks.fault(schemas.ShardRef{Topic: t.Name}, err)
}

// retryViews makes the views again that were refused and are due.
func (s *Sinks) retryViews(ctx context.Context, topics []registry.TopicShards) {
	now := time.Now()
	for i := range topics {
		t := &topics[i].Topic
		s.views.mu.Lock()
		a, missing := s.views.missing[t.Name]
		s.views.mu.Unlock()
		if missing && !now.Before(a.due) {
			s.ensureViews(ctx, t)
		}
	}
}
