package repair

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// insert brings back the rows of a stretch that are missing, batch by batch.
func (r *Repairer) insert(ctx context.Context, a *Action) error {
	table, err := r.table(ctx, a)
	if err != nil {
		return err
	}
	erasures, err := r.reg.Ledger(ctx, a.Topic)
	if err != nil {
		return err
	}
	for frames := a.frames; len(frames) > 0; {
		n := batchOf(frames, erasures)
		brought, err := r.bring(ctx, a, frames[:n])
		if err != nil {
			return err
		}
		m := &tables.TableRepair{Topic: a.topic, Schema: frames[0].schema, Month: a.ref.Month, Shard: a.ref.ID, Lo: a.lo, Hi: a.hi, Frames: brought, UUID: table}
		if cover := coverOf(frames[:n], erasures); len(cover) > 0 {
			m.Keep.SQL, m.Keep.Params = cover.Keep()
		}
		if err := r.patiently(ctx, func() error { return r.db.InsertMissing(ctx, m) }); err != nil {
			return err
		}
		r.crash("after insert")
		frames = frames[n:]
	}
	return nil
}

// store stores frames above the head as a sink does, and as safely beside one:
// one insert can win after each head.
func (r *Repairer) store(ctx context.Context, a *Action) error {
	erasures, err := r.reg.Ledger(ctx, a.Topic)
	if err != nil {
		return err
	}
	if err := r.db.Ensure(ctx, a.topic); err != nil {
		return err
	}
	table, err := r.table(ctx, a)
	if err != nil {
		return err
	}
	for {
		head, absent, err := r.head(ctx, a.ref)
		if err != nil {
			return err
		}
		frames := a.frames[chain(a.frames).at(head+1):]
		if len(frames) == 0 {
			return nil
		}
		if head < a.lo {
			return fmt.Errorf("position %d must be stored first, ClickHouse has %d", a.lo, head)
		}
		n := batchOf(frames, erasures)
		if len(coverOf(frames[:n], erasures)) > 0 {
			// What is struck of them has to be booked as well, which a sink does.
			return fmt.Errorf("an erasure concerns positions %d to %d: a sink has to store them; start one, or restart it", frames[0].pos, frames[n-1].pos)
		}
		brought, err := r.bring(ctx, a, frames[:n])
		if err != nil {
			return err
		}
		in := &tables.Insert{Topic: a.topic, Schema: frames[0].schema, Month: a.ref.Month, Shard: a.ref.ID, Head: head, Frames: brought, Absent: absent, UUID: table}
		_, err = tables.Follow(head, func(attempt int) error {
			in.Attempt = attempt // the token before may be of the insert whose rows are gone
			insertErr := r.patiently(ctx, func() error { return r.db.Insert(ctx, in) })
			r.crash("after store")
			return insertErr
		}, func() (uint64, error) {
			now, _, err := r.head(ctx, a.ref) // moved by us or by a sink
			return now, err
		})
		if err != nil {
			return err
		}
	}
}

// table is the UUID of the table that an action is for. The registry is asked afterwards: if the topic was removed by then, the
// action ends; if it is removed later, the table is another one.
func (r *Repairer) table(ctx context.Context, a *Action) (string, error) {
	uuid, err := r.db.UUID(ctx, a.Topic)
	if err != nil {
		return "", err
	}
	return uuid, r.reg.IfRemoved(ctx, nil, a.topic)
}

// head is a shard's head, and how far it lies above what ClickHouse has: rows that
// carried it are gone on purpose.
func (r *Repairer) head(ctx context.Context, ref schemas.ShardRef) (head, absent uint64, err error) {
	pos, err := r.db.Head(ctx, ref)
	if err != nil {
		return 0, 0, err
	}
	e, err := r.reg.Shard(ctx, ref)
	if err != nil && !errors.Is(err, registry.ErrNotFound) && !errors.Is(err, registry.ErrUnreadable) {
		return 0, 0, err
	}
	head = e.Head(pos)
	return head, head - pos, nil
}

// patiently tries again while ClickHouse asks for patience.
func (r *Repairer) patiently(ctx context.Context, f func() error) error {
	for range maxBusy {
		err := f()
		if !errors.Is(err, tables.ErrBusy) {
			return err
		}
		if err := backoff.Sleep(ctx, busyPause); err != nil {
			return err
		}
	}
	return f()
}

// An insert takes 20 s at the most until its rows flow (tables.InsertDeadline).
const (
	maxBusy   = 60
	busyPause = 500 * time.Millisecond
)
