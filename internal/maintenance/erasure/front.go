package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

const (
	// maxTouched bounds the keys of one SELECT.
	maxTouched = 5000
	// frontAtOnce is how many keys are cleared side by side.
	frontAtOnce = 8
	// frontTries bounds how often a key is looked at again because it changed meanwhile.
	frontTries = 100
)

// front takes out of a topic's front what an erasure means. Everything up to the fence is stored and still there, so
// ClickHouse says which keys are meant. Each step may be done again.
func (x *Eraser) front(ctx context.Context, e *ledger.Erasure) error {
	t, err := x.cfg.Registry.Topic(ctx, e.Topic)
	if err != nil {
		return err
	}
	w, err := fronts.Open(ctx, x.js, e.Front, fronts.Config{})
	if err != nil {
		return fmt.Errorf("erase: %w", err)
	}
	s, err := streams.Open(ctx, x.js, e.Front)
	if err != nil {
		return fmt.Errorf("erase: %s: %w", e.Front, err)
	}
	f := &front{x: x, e: e, k: records.OfFront(e.Front), t: &t, w: w, s: s}
	for lane := range t.Lanes {
		if err := f.lane(ctx, lane); err != nil {
			return err
		}
	}
	if e.State != ledger.Erased {
		return nil
	}
	_, err = x.returned(ctx, e, s)
	return err
}

// front is the front of a topic, of which an erasure takes what it means.
type front struct {
	x *Eraser
	e *ledger.Erasure
	k *records.Kind
	t *schemas.Topic
	w *fronts.Writer
	s jetstream.Stream
}

// lane lists what the erasure means in a lane, page after page, and clears some at once.
func (f *front) lane(ctx context.Context, lane int) error {
	cond, params := f.e.Match("e")
	for after := (*records.Meant)(nil); ; {
		meant, err := f.k.Meant(ctx, f.x.cfg.DB, f.t, lane, nil, tables.Condition{SQL: cond, Params: params}, after, maxTouched)
		if err != nil {
			return fmt.Errorf("erase: %w", err)
		}
		if len(meant) == 0 {
			return nil
		}
		g, gctx := fanout.WithContext(ctx)
		g.SetLimit(frontAtOnce)
		for i := range meant {
			g.Go(func() error { return f.clear(gctx, &meant[i]) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		after = &meant[len(meant)-1]
	}
}

// clear takes a key's records up to the fence out of the front, until what is there came later or is not meant. Its
// cleaner and its writers may be at work.
func (f *front) clear(ctx context.Context, m *records.Meant) error {
	for range frontTries {
		r, at, err := fronts.Newest(ctx, f.w, m.Subject, f.k.Parse)
		if errors.Is(err, fronts.ErrReplaced) {
			return nil // nothing of it is there; what took its place is a dead letter
		}
		if err != nil {
			return fmt.Errorf("erase: %s: %w", f.k.Name(m.Subject), err)
		}
		c := f.k.Clear(f.t, &records.Last{Record: r, At: at}, m, f.e.Fence)
		if c.Put != nil {
			if err := f.put(ctx, c.Put); err != nil && !errors.Is(err, fronts.ErrConflict) {
				return fmt.Errorf("erase: %s: %w", f.k.Name(m.Subject), err)
			}
			continue
		}
		if c.Goes != nil {
			if err := f.x.overwrite(ctx, f.s, m.Subject, c.Goes); err != nil {
				return fmt.Errorf("erase: %s: %w", f.k.Name(m.Subject), err)
			}
		}
		if !c.Again {
			return nil
		}
	}
	return fmt.Errorf("%w: %s was changed by others, %d times; `almanac erase resume %s` goes on", ErrNotGone, f.k.Name(m.Subject), frontTries, f.e.ID)
}

func (f *front) put(ctx context.Context, next func(now int64) (fronts.Record, error)) error {
	now, err := f.w.Now(ctx)
	if err != nil {
		return err
	}
	r, err := next(now)
	if err != nil {
		return err
	}
	_, err = f.w.Put(ctx, r)
	return err
}

// overwrite removes those of a key's messages that go, and their bytes on disk: a purge leaves
// those in the stream's file.
func (x *Eraser) overwrite(ctx context.Context, s jetstream.Stream, subject string, goes func([]*streams.Message) []uint64) error {
	var there []*streams.Message
	front := s.CachedInfo().Config.Name
	if _, err := streams.Headers(ctx, x.js, front, subject, 1, func(m *streams.Message) error {
		there = append(there, m)
		return nil
	}); err != nil {
		return err
	}
	seqs := goes(there)
	overwriteOrder(seqs)
	for _, seq := range seqs {
		// A record has one key's events, and those are to go. No copy needs it, whichever it has.
		if err := streams.Delete(ctx, x.js, s, seq, true, streams.Unneeded); err != nil {
			return err
		}
	}
	return nil
}

// overwriteOrder puts rising sequences into the order in which they are overwritten: the newest
// first, but for the last one, which is there as long as any is. NATS writes the
// block again for each. It leaves out what is gone, once that is half of the block, and does so
// only when the message that goes is not the first of its block (2.15, removeMsgFromBlock).
func overwriteOrder(seqs []uint64) {
	if len(seqs) > 1 {
		slices.Reverse(seqs[:len(seqs)-1])
	}
}

// frontHolding counts the records of a front that an erasure may mean. Of one by users
// alone those are told by their headers; what a filter means is gone once it is erased.
func (x *Eraser) frontHolding(ctx context.Context, e *ledger.Erasure) (Holding, error) {
	h, k := Holding{Stream: e.Front}, records.OfFront(e.Front)
	t, err := x.cfg.Registry.Topic(ctx, e.Topic)
	if err != nil {
		return h, err
	}
	_, err = streams.Headers(ctx, x.js, e.Front, t.SourceTopicFilter(e.Front), 1, func(msg *streams.Message) error {
		r, err := k.Parse(msg)
		if err != nil || r.Row > e.Fence || r.Changed < e.From || r.Changed > e.To {
			return nil
		}
		if len(e.Users) > 0 && !slices.Contains(e.Users, r.User) || e.Where != "" && e.State == ledger.Erased {
			return nil
		}
		h.Messages++
		return nil
	})
	return h, err
}
