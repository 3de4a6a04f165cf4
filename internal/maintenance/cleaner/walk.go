package cleaner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// walk is one way along a lane of a front.
type walk struct {
	topic *schemas.Topic
	kind  *records.Kind
	lane  int
	end   uint64 // of the front, before the walk
	upTo  uint64 // all of the lane up to here is stored
	now   time.Time
	age   time.Duration // what is younger stays
	cold  bool
	held  map[string]bool
	// dropped are the shards that retention took; orphans are stubs of them that the walk met.
	dropped map[schemas.ShardRef]bool
	orphans []purging
}

const (
	// maxSeen bounds the records of one step: one SELECT asks for all of them.
	maxSeen = 5000
	// maxSteps bounds the steps of a lane in a round: the janitor has other work.
	maxSteps = 10
	// maxLast bounds the keys whose last messages are asked for at once: they come with their bodies.
	maxLast = 64
)

// met is a record that a walk met, by its headers.
type met struct {
	*streams.Message
	*records.Record
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// walk takes out what may leave above a sequence, step by step, and moves it on. Stubs of a step are
// written while the next looks. Where one fails the walk begins here again, and passes over
// those that are written.
func (c *Cleaner) walk(ctx context.Context, w *walk, at *progress) (Done, error) {
	if at.mayWait(w) {
		return Done{}, nil
	}
	out := newLeaving(c, w)
	next, err := c.steps(ctx, w, *at, out)
	done, failed := out.end(ctx)
	if failed == nil {
		*at = next
	}
	return done, errors.Join(err, failed)
}

// steps goes from step to step, and returns how far it came.
func (c *Cleaner) steps(ctx context.Context, w *walk, at progress, out *leaving) (progress, error) {
	for range maxSteps {
		records, next, err := c.look(ctx, w, at)
		if err != nil {
			return at, err
		}
		if len(records) > 0 {
			if err := c.step(ctx, w, records, next.at, out); err != nil {
				return at, err
			}
		}
		for _, p := range w.orphans {
			if err := out.purge(ctx, p.subject, p.upTo); err != nil {
				return at, err
			}
		}
		w.orphans = nil
		at = next
		if len(w.held) > maxHeld {
			return at, fmt.Errorf("cleaner: topic %q, lane %d: %w: more than %d keys; run `almanac verify %s`", w.topic.Name, w.lane, ErrNoRow, maxHeld, w.topic.Name)
		}
		if len(records) < maxSeen {
			break
		}
	}
	return at, nil
}

// look reads the headers above a mark, up to what is stored and old enough. It returns
// the records that are not stubs, and up to where it came.
func (c *Cleaner) look(ctx context.Context, w *walk, after progress) (records []met, next progress, err error) {
	next = progress{at: after.at, next: max(after.at, w.end) + 1}
	front := w.topic.Front()
	_, err = streams.Headers(ctx, c.js, front, w.topic.SourceFilter(front, strconv.Itoa(w.lane)), after.at+1, func(m *streams.Message) error {
		if m.Sequence > w.upTo || w.now.Sub(m.Time) < w.age || len(records) == maxSeen {
			next.next, next.stored = m.Sequence, m.Time
			return errEnough
		}
		next.at = m.Sequence
		r, err := w.kind.Parse(m)
		if err == nil && r.Stub != nil {
			if w.dropped[schemas.ShardRef{Topic: w.topic.Name, Month: r.Stub.Month, ID: r.Stub.Shard}] {
				w.orphans = append(w.orphans, purging{m.Subject, m.Sequence})
			}
			return nil
		}
		if err != nil || !schemas.Literal(m.Subject) {
			w.held[m.Subject] = true // the router made a dead letter of it
			return nil
		}
		records = append(records, met{m, r})
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return records, next, err
}

// step reads the rows of records back, and takes out what of their keys may leave. The walk
// met every record up to a sequence, so the last of a key that it met is the key's last unless one
// came above.
func (c *Cleaner) step(ctx context.Context, w *walk, records []met, upTo uint64, out *leaving) error {
	places, err := c.rows(ctx, w, records)
	if err != nil {
		return err
	}
	var subjects []string
	bySubject := map[string][]met{}
	for _, r := range records {
		if bySubject[r.Subject] == nil {
			subjects = append(subjects, r.Subject)
		}
		bySubject[r.Subject] = append(bySubject[r.Subject], r)
	}
	var again []string // of these the body is needed
	for some := range slices.Chunk(subjects, maxLast) {
		later := map[string]*streams.Message{}
		err := streams.LatestAfter(ctx, c.js, w.topic.Front(), some, upTo, func(m *streams.Message) error {
			later[m.Subject] = m
			return nil
		})
		if err != nil {
			return err
		}
		for _, subject := range some {
			seen := bySubject[subject]
			last := later[subject]
			if last == nil {
				last = seen[len(seen)-1].Message
			}
			body, err := c.decide(ctx, w, seen, last, true, places, out)
			if err != nil {
				return err
			}
			if body {
				again = append(again, subject)
			}
		}
	}
	for some := range slices.Chunk(again, maxLast) {
		err := streams.LatestOf(ctx, c.js, w.topic.Front(), some, func(m *streams.Message) error {
			_, err := c.decide(ctx, w, bySubject[m.Subject], m, false, places, out)
			return err
		})
		if err != nil {
			return err
		}
	}
	return out.flushPurges(ctx)
}

// decide decides about a key by its last message, and notes what is to be done; or reports that it
// takes the body, which a bare message lacks.
func (c *Cleaner) decide(ctx context.Context, w *walk, seen []met, last *streams.Message, bare bool, places map[uint64]schemas.FrontPlace, out *leaving) (body bool, err error) {
	s := keyState{stored: !w.held[last.Subject], last: last.Sequence, whole: w.kind.Whole()}
	for _, r := range seen {
		_, ok := places[r.Row]
		s.seen, s.stored = append(s.seen, r.Sequence), s.stored && ok
	}
	now, err := w.kind.Parse(last)
	s.misplaced, s.over = err != nil, err == nil && now.Over
	what, upTo := decide(&s, w.cold)
	var again func(*streams.Message, schemas.FrontPlace) (fronts.Record, error)
	switch what {
	case hold:
		w.held[last.Subject] = true
		out.count(func(d *Done) { d.Held++ })
		return false, nil
	case purge:
		return false, out.purge(ctx, last.Subject, upTo)
	case stub:
		again = w.kind.Stub
	case refresh:
		if bare {
			return true, nil
		}
		again = w.kind.Refresh
	default:
		return false, nil
	}
	r, err := again(last, places[now.Row])
	if err != nil {
		return false, fmt.Errorf("cleaner: %w", err)
	}
	out.put(ctx, r, what)
	return false, nil
}
