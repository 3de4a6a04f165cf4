package timers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Change is what an update changes; nil fields stay.
type Change struct {
	Due         *time.Time
	URL         *string
	Payload     *json.RawMessage
	Timeout     *time.Duration
	Retry       *timer.Policy
	MaxLateness *time.Duration
	Bare        *bool
}

// Condition says which revision an update or a delete expects.
type Condition struct{ revision int64 }

// Always takes whatever revision is there.
var Always = Condition{timer.AnyRevision}

// IfRevision takes the revision alone that a caller read.
func IfRevision(n int64) Condition { return Condition{n} }

// Update changes a pending timer whose revision is the expected one, and gives it all its attempts again.
// timer.ErrRevision: it has another; timer.ErrFiring: it is being called; timer.ErrNotFound: it is over.
func (t *Timers) Update(ctx context.Context, group, id string, cond Condition, c Change) (Timer, error) {
	asked, err := t.Now(ctx) // the due time is evaluated as it was asked for, however slow the registry is
	if err != nil {
		return Timer{}, err
	}
	g, key, err := t.key(ctx, group, id)
	if err != nil {
		return Timer{}, err
	}
	r, err := t.rewrite(ctx, key, func(prev *timer.Record, now int64) (timer.Record, error) {
		change, err := c.on(prev, g, asked, now)
		if err != nil {
			return timer.Record{}, err
		}
		return timer.Update(prev, change, cond.revision, now)
	})
	return viewOf(r, err)
}

// FireNow makes a pending timer due now.
func (t *Timers) FireNow(ctx context.Context, group, id string) (Timer, error) {
	now, err := t.Now(ctx)
	if err != nil {
		return Timer{}, err
	}
	return t.Update(ctx, group, id, Always, Change{Due: &now})
}

// Delete cancels a timer. inFlight: it is being called at this moment, and gets no more attempts.
func (t *Timers) Delete(ctx context.Context, group, id string, cond Condition) (inFlight bool, err error) {
	_, key, err := t.key(ctx, group, id)
	if err != nil {
		return false, err
	}
	_, err = t.rewrite(ctx, key, func(prev *timer.Record, now int64) (next timer.Record, err error) {
		next, inFlight, err = timer.Delete(prev, cond.revision, now)
		return next, err
	})
	return inFlight, err
}

// Retry makes a failed timer pending again, due now, with all its attempts. One that has left the front comes
// back to it from the Archive.
func (t *Timers) Retry(ctx context.Context, group, id string) (Timer, error) {
	_, key, err := t.key(ctx, group, id)
	if err != nil {
		return Timer{}, err
	}
	return viewOf(t.rewrite(ctx, key, func(prev *timer.Record, now int64) (timer.Record, error) {
		if prev == nil {
			if prev, err = t.archived(ctx, key); err != nil {
				return timer.Record{}, err
			}
		}
		return timer.Again(prev, now)
	}))
}

// archived returns the record of a timer that left the front; nil where there is no such timer.
func (t *Timers) archived(ctx context.Context, key schemas.TimerKey) (*timer.Record, error) {
	rows, err := t.stored(ctx, key)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return recordOf(key, rows)
}

// rewrite reads a timer, has f say what follows, and writes it; again when another write was first.
func (t *Timers) rewrite(ctx context.Context, key schemas.TimerKey, f func(prev *timer.Record, now int64) (timer.Record, error)) (*timer.Record, error) {
	for range tries {
		prev, expect, err := t.last(ctx, key, true)
		if err != nil {
			return nil, err
		}
		if prev != nil {
			if erased, err := t.hidden(ctx, prev); err != nil || erased {
				return nil, cmp.Or(err, noTimer(key.Group, key.ID))
			}
		}
		now, err := t.w.Now(ctx)
		if err != nil {
			return nil, err
		}
		next, err := f(prev, now)
		if err != nil {
			return nil, err
		}
		err = t.put(ctx, prev, &next, expect)
		if err == nil {
			if next.Spec == nil && prev != nil {
				next.Spec = prev.Spec
			}
			return &next, nil
		}
		if !errors.Is(err, fronts.ErrConflict) {
			return nil, err
		}
	}
	return nil, busy(key)
}

// on makes the record's change of c, checked as a creation is. A due time that passed since it was asked for is now,
// unix ns: with a small MaxLateness the timer would fail without a call.
func (c Change) on(prev *timer.Record, g timer.Group, asked time.Time, now int64) (timer.Change, error) {
	var out timer.Change
	if c.Due != nil {
		due, err := timer.CheckDue(*c.Due, asked)
		if err != nil {
			return out, err
		}
		due = max(due, now)
		out.Due = &due
	}
	if prev == nil || prev.Spec == nil {
		return out, nil
	}
	s := *prev.Spec
	if c.URL != nil {
		s.URL = *c.URL
	}
	if c.Payload != nil {
		s.Payload = *c.Payload
	}
	if c.Bare != nil {
		s.Bare = *c.Bare
	}
	if c.Timeout != nil {
		s.Timeout = *c.Timeout
	}
	if c.Retry != nil {
		s.Retry = c.Retry
	}
	if c.MaxLateness != nil {
		s.MaxLateness = *c.MaxLateness
	}
	out.Spec = &s
	return out, s.Validate(g.AllowHosts)
}
