package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/budget"
)

// DeadOf lists up to limit dead letters of a topic and a reason, each of them where it is empty. They come oldest first, without payloads.
func (r *Reader) DeadOf(ctx context.Context, topic, reason string, limit int) (out []DeadLetter, err error) {
	var full error
	err = r.EachDead(ctx, topic, func(d *DeadLetter) bool {
		if reason == "" || d.Reason == reason {
			if full = budget.Of(ctx).Take(letterBytes); full != nil {
				return false
			}
			out = append(out, *d)
		}
		return len(out) < limit
	})
	return out, cmp.Or(full, err)
}

// DeadCount is how many dead letters a topic has of a reason, and how many events they hold.
type DeadCount struct {
	Topic   string `json:"topic"`
	Reason  string `json:"reason"`
	Letters int    `json:"letters"`
	Events  int    `json:"events"`
}

// maxDeadCounts bounds the topics and reasons that are told apart. There are some twenty reasons.
const maxDeadCounts = 20_000

// DeadReasons counts the dead letters of a topic, or of all when topic is empty, by their reasons.
func (r *Reader) DeadReasons(ctx context.Context, topic string) ([]DeadCount, error) {
	counts := map[DeadCount]*DeadCount{}
	many := false
	err := r.EachDead(ctx, topic, func(d *DeadLetter) bool {
		key := DeadCount{Topic: d.Topic, Reason: d.Reason}
		c := counts[key]
		if c == nil {
			if many = len(counts) == maxDeadCounts; many {
				return false
			}
			c = &DeadCount{Topic: d.Topic, Reason: d.Reason}
			counts[key] = c
		}
		c.Letters++
		c.Events += d.Events
		return true
	})
	if many {
		err = fmt.Errorf("%w: more than %d topics and reasons; name a topic", budget.ErrLarge, maxDeadCounts)
	}
	out := make([]DeadCount, 0, len(counts))
	for _, c := range counts {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b DeadCount) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Reason, b.Reason))
	})
	return out, err
}
