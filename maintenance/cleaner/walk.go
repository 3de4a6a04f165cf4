package cleaner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/fronts"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// walk is one way along a lane of a front.
type walk struct {
	topic *schemas.Topic
	kind  *Kind
	lane  int
	upTo  uint64 // all of the lane up to here is stored
	now   time.Time
	age   time.Duration // what is younger stays
	cold  bool
	held  map[string]bool
}

const (
	// maxSeen bounds the records of one step: one SELECT asks for all of them.
	maxSeen = 5000
	// maxSteps bounds the steps of a lane in a round: the janitor has other work.
	maxSteps = 10
	// maxLast bounds the keys whose last messages are read at once, with their bodies.
	maxLast = 64
)

// met is a record that a walk met.
type met struct {
	subject string
	seq     uint64
	Record
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

// walk takes out what may leave above a sequence, step by step, and moves it on.
func (c *Cleaner) walk(ctx context.Context, w *walk, at *uint64) (Done, error) {
	var all Done
	for range maxSteps {
		records, next, err := c.look(ctx, w, *at)
		if err != nil {
			return all, err
		}
		if len(records) > 0 {
			done, err := c.step(ctx, w, records)
			all.add(done)
			if err != nil {
				return all, err
			}
		}
		*at = next
		if len(w.held) > maxHeld {
			return all, fmt.Errorf("cleaner: topic %q, lane %d: %w: more than %d keys; run `almanac verify %s`", w.topic.Name, w.lane, ErrHeld, maxHeld, w.topic.Name)
		}
		if len(records) < maxSeen {
			return all, nil
		}
	}
	return all, nil
}

// look reads the headers above a sequence, up to what is stored and old enough. It returns
// the records that are not stubs, and up to where it came.
func (c *Cleaner) look(ctx context.Context, w *walk, after uint64) (records []met, next uint64, err error) {
	next = after
	front := w.topic.Front()
	_, err = streams.Headers(ctx, c.js, front, schemas.SourceFilter(front, w.topic.Name, strconv.Itoa(w.lane)), after+1, func(m *streams.Message) error {
		if m.Sequence > w.upTo || w.now.Sub(m.Time) < w.age || len(records) == maxSeen {
			return errEnough
		}
		next = m.Sequence
		r, err := w.kind.Parse(m)
		if err == nil && r.Row == nil {
			return nil // a stub
		}
		if err != nil || !schemas.Literal(m.Subject) {
			w.held[m.Subject] = true // the router made a dead letter of it
			return nil
		}
		records = append(records, met{m.Subject, m.Sequence, r})
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return records, next, err
}

// step reads the rows of records back, and takes out what of their keys may leave.
func (c *Cleaner) step(ctx context.Context, w *walk, records []met) (done Done, err error) {
	places, err := c.rows(ctx, w, records)
	if err != nil {
		return done, err
	}
	var subjects []string
	bySubject := map[string][]met{}
	for _, r := range records {
		if bySubject[r.subject] == nil {
			subjects = append(subjects, r.subject)
		}
		bySubject[r.subject] = append(bySubject[r.subject], r)
	}
	out := &leaving{c: c, w: w}
	for some := range slices.Chunk(subjects, maxLast) {
		err := streams.LatestOf(ctx, c.js, w.topic.Front(), some, func(m *streams.Message) error {
			return c.judge(ctx, w, bySubject[m.Subject], m, places, out)
		})
		if err != nil {
			return out.done, err
		}
	}
	return out.done, out.flush(ctx)
}

// judge decides about a key, and notes what is to be done.
func (c *Cleaner) judge(ctx context.Context, w *walk, records []met, last *streams.Message, places map[uint64]schemas.FrontPlace, out *leaving) error {
	s := sight{stored: !w.held[last.Subject], last: last.Sequence, whole: w.kind.Stub == nil}
	for _, r := range records {
		_, ok := places[r.Row.Seq]
		s.seen, s.stored = append(s.seen, r.seq), s.stored && ok
	}
	now, err := w.kind.Parse(last)
	s.stray, s.over = err != nil, now.Over
	what, upTo := decide(&s, w.cold)
	var again func(*streams.Message, schemas.FrontPlace) (fronts.Record, error)
	switch what {
	case hold:
		w.held[last.Subject] = true
		out.done.Held++
		return nil
	case purge:
		return out.purge(ctx, last.Subject, upTo)
	case stub:
		again = w.kind.Stub
	case refresh:
		again = w.kind.Refresh
	default:
		return nil
	}
	r, err := again(last, places[now.Row.Seq])
	if err != nil {
		return fmt.Errorf("cleaner: %w", err)
	}
	return out.put(ctx, r, what)
}
