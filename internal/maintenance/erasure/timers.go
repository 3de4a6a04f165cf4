package erasure

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// timersFront takes out of TIMERS what an erasure means. Everything up to the fence is stored and still there, so
// ClickHouse says which timers are meant. Each step may be done again.
func (x *Eraser) timersFront(ctx context.Context, e *ledger.Erasure, t *schemas.Topic, w *fronts.Writer, s jetstream.Stream) error {
	return eachMeant(ctx, e, t, func(lane int, c tables.Condition, after tables.MeantTimer) ([]tables.MeantTimer, error) {
		return x.cfg.DB.MeantTimers(ctx, e.Topic, lane, c, after, maxTouched)
	}, func(ctx context.Context, m tables.MeantTimer) error { return x.clearTimer(ctx, e, t, w, s, m) })
}

// clearTimer takes a timer's records up to the fence out of TIMERS. One whose present life is meant is cancelled
// first, which is a record of its own that names no user: a dispatcher can no longer call it, and
// nothing that stays needs the spec. Of one whose earlier lives are meant, those go.
func (x *Eraser) clearTimer(ctx context.Context, e *ledger.Erasure, t *schemas.Topic, w *fronts.Writer, s jetstream.Stream, m tables.MeantTimer) error {
	subject := m.Key(t).Subject()
	for range frontTries {
		records, err := x.timerRecords(ctx, subject)
		if err != nil {
			return fmt.Errorf("erase: timer %q: %w", m.ID, err)
		}
		if len(records) == 0 {
			return nil
		}
		last := &records[len(records)-1]
		if cancels(last, m.Life) {
			now, err := w.Now(ctx)
			if err != nil {
				return err
			}
			next, _, err := timer.Delete(last, timer.AnyRevision, now)
			if err == nil {
				next.User = ""
				err = x.putTimer(ctx, w, &next, last.Expect())
			}
			if err != nil && !errors.Is(err, fronts.ErrConflict) {
				return fmt.Errorf("erase: timer %q: %w", m.ID, err)
			}
			continue
		}
		if upTo := clearsTimer(records, e.Fence, m.Life); upTo > 0 {
			if err := x.overwrite(ctx, s, subject, func(m *streams.Message) bool { return m.Sequence <= upTo }); err != nil {
				return fmt.Errorf("erase: timer %q: %w", m.ID, err)
			}
		}
		return nil
	}
	return fmt.Errorf("%w: timer %q was changed by others, %d times; `almanac erase resume %s` goes on", ErrNotGone, m.ID, frontTries, e.ID)
}

// cancels reports whether a timer must be cancelled first: its present life is meant and not over.
func cancels(last *timer.Record, life string) bool {
	return last.Life.String() == life && !last.State().Over()
}

// clearsTimer returns up to which sequence, with it, the records of a timer go; 0: none. The present life goes
// whole if it is meant, and is over then. Otherwise what came before it goes.
func clearsTimer(records []timer.Record, fence uint64, life string) (upTo uint64) {
	present := records[len(records)-1].Life
	for i := range records {
		if records[i].Seq > fence || records[i].Life == present && present.String() != life {
			break
		}
		upTo = records[i].Seq
	}
	return upTo
}

// timerRecords reads the records of a timer that are in TIMERS, oldest first, without specs.
func (x *Eraser) timerRecords(ctx context.Context, subject string) (out []timer.Record, err error) {
	_, err = streams.Headers(ctx, x.js, schemas.StreamTimers, subject, 1, func(m *streams.Message) error {
		if r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil); err == nil {
			out = append(out, r)
		} else if len(out) > 0 { // what is not a record lies above
			out[len(out)-1].Last = m.Sequence
		}
		return nil
	})
	return out, err
}

func (x *Eraser) putTimer(ctx context.Context, w *fronts.Writer, r *timer.Record, expect uint64) error {
	h, data, err := r.Message()
	if err == nil {
		_, err = w.Put(ctx, fronts.Record{Subject: r.Key.Subject(), Header: h, Data: data, Expect: expect, For: fronts.End})
	}
	return err
}
