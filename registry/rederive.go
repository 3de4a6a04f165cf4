package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// rederiveLapse is after how long a mark no longer keeps retention from a shard: a drop of what
// is derived takes seconds, and one that takes rederiveTime is given up. The rest is for
// ClickHouse, which may still be at a statement that no caller waits for.
const (
	rederiveLapse = 10 * time.Minute
	rederiveTime  = rederiveLapse / 2
)

// Rederiving says that something drops what is derived from the shard's rows, or died while
// it did: without the rows its sums could not be filled again.
func (s *Shard) Rederiving(now time.Time) bool {
	for _, at := range s.Rederives {
		if now.Sub(at) < rederiveLapse {
			return true
		}
	}
	return false
}

// Retained is which shards of a topic are dropped, or about to be, and keeps retention from
// the others.
type Retained struct {
	r     *Registry
	topic string
}

// Dropped is the Retained of a topic.
func (r *Registry) Dropped(topic string) Retained { return Retained{r, topic} }

// Shards lists the shards whose events are dropped, or about to be, as DroppedOf.
func (d Retained) Shards(ctx context.Context) (map[schemas.ShardRef]bool, error) {
	entries, err := d.r.Shards(ctx, d.topic, 0)
	return DroppedOf(entries), err
}

// Unless drops what is derived from a shard's rows, unless retention drops the rows. A mark in
// the shard's entry excludes the two:
//
//	a drop:     mark ─▶ drop ─▶ take the mark away
//	retention:  read the entry ─▶ see that the sums are complete ─▶ MarkDropping, if the entry is as it was read
//
// A mark that was there and taken away before retention read: the sums that it saw are those of
// after. One that stands: retention waits. One that comes, or comes and goes, between: the entry
// changed, MarkDropping is a conflict. One that comes after MarkDropping: it is not made, and
// drop does not run. Each drop has a mark of its own. That of a drop which failed or died stays
// until it lapses. What remains is a process that stops for longer than that between its mark and
// its statement.
//
// A shard without an entry is not retention's: drop runs.
func (d Retained) Unless(ctx context.Context, ref schemas.ShardRef, drop func(context.Context) error) error {
	token, now := fmt.Sprintf("%016x", rand.Uint64()), time.Now().UTC()
	s, err := d.r.amend(ctx, ref, func(s *Shard) bool {
		if _, marked := s.Rederives[token]; marked || s.Gone() {
			return false
		}
		marks := map[string]time.Time{token: now}
		for of, at := range s.Rederives {
			if now.Sub(at) < rederiveLapse {
				marks[of] = at
			}
		}
		s.Rederives = marks
		return true
	})
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err == nil && s.Gone() {
		return nil
	}
	bounded, cancel := context.WithDeadline(ctx, now.Add(rederiveTime))
	defer cancel()
	if dropErr := drop(bounded); dropErr != nil || err != nil {
		return dropErr
	}
	_, err = d.r.amend(ctx, ref, func(s *Shard) bool {
		marks := map[string]time.Time{}
		for of, at := range s.Rederives {
			if of != token {
				marks[of] = at
			}
		}
		changed := len(marks) < len(s.Rederives)
		s.Rederives = marks
		return changed
	})
	return err
}
