package erasure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

const (
	// maxTouched bounds the documents of one SELECT.
	maxTouched = 5000
	// frontAtOnce is how many documents are cleared side by side.
	frontAtOnce = 8
	// frontTries bounds how often a document is looked at again because it changed meanwhile.
	frontTries = 100
)

// front takes out of a topic's front, for documents DOCS, what an erasure means. Everything up to the fence is stored and
// still there, so ClickHouse says which documents are meant. Each step may be done again.
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
	if t.Kind == kinds.Timer {
		err = x.timersFront(ctx, e, &t, w, s)
	} else {
		err = eachMeant(ctx, e, &t, func(lane int, c tables.Condition, after tables.Meant) ([]tables.Meant, error) {
			return x.cfg.DB.MeantDocuments(ctx, e.Topic, lane, c, after.ID, maxTouched)
		}, func(ctx context.Context, d tables.Meant) error { return x.clearDocument(ctx, e, &t, w, s, d) })
	}
	if err != nil || e.State != ledger.Erased {
		return err
	}
	_, err = x.returned(ctx, e, s)
	return err
}

// eachMeant lists what an erasure means, lane by lane and page after page, and clears some at once. The first
// page comes after the zero M.
func eachMeant[M any](ctx context.Context, e *ledger.Erasure, t *schemas.Topic, list func(lane int, c tables.Condition, after M) ([]M, error), clear func(context.Context, M) error) error {
	cond, params := e.Match("e")
	for lane := range t.Lanes {
		for after := *new(M); ; {
			meant, err := list(lane, tables.Condition{SQL: cond, Params: params}, after)
			if errors.Is(err, tables.ErrNoTable) || err == nil && len(meant) == 0 {
				break
			}
			if err != nil {
				return fmt.Errorf("erase: %w", err)
			}
			g, gctx := fanout.WithContext(ctx)
			g.SetLimit(frontAtOnce)
			for _, m := range meant {
				g.Go(func() error { return clear(gctx, m) })
			}
			if err := g.Wait(); err != nil {
				return err
			}
			after = meant[len(meant)-1]
		}
	}
	return nil
}

// clearDocument takes a document's records up to the fence out of DOCS, until what is
// there came later or is not meant. Its cleaner and its writers may be at work.
func (x *Eraser) clearDocument(ctx context.Context, e *ledger.Erasure, t *schemas.Topic, w *fronts.Writer, s jetstream.Stream, d tables.Meant) error {
	subject := schemas.DocSubject(t.Name, document.Lane(t, d.ID), d.ID)
	for range frontTries {
		r, at, err := fronts.Newest(ctx, w, subject, parseDocument)
		if errors.Is(err, fronts.ErrReplaced) {
			return nil // nothing of it is there; what took its place is a dead letter
		}
		if err != nil {
			return fmt.Errorf("erase: document %q: %w", d.ID, err)
		}
		if r == nil {
			if !d.Last || d.All {
				return nil
			}
			// Its removal is meant too, and older versions stay: another removal follows.
			last := document.Record{Topic: t.Name, Lane: strconv.Itoa(document.Lane(t, d.ID)), ID: d.ID, Path: d.Path, Version: d.Version, Created: d.Created, Last: at}
			if err := x.removeDocument(ctx, w, &last); !errors.Is(err, fronts.ErrConflict) {
				return err
			}
			continue
		}
		r.Last = at
		what, upTo := clears(r, e.Fence, d)
		if what == clearRemove {
			if err := x.removeDocument(ctx, w, r); err != nil && !errors.Is(err, fronts.ErrConflict) {
				return err
			}
			continue // what lies below the removal goes now
		}
		if upTo > 0 {
			if err := x.overwrite(ctx, s, subject, func(m *streams.Message) bool { return m.Sequence <= upTo && rowSeq(m) <= e.Fence }); err != nil {
				return fmt.Errorf("erase: document %q: %w", d.ID, err)
			}
		}
		if what == clearOlder {
			return nil
		}
	}
	return fmt.Errorf("%w: document %q was changed by others, %d times; `almanac erase resume %s` goes on", ErrNotGone, d.ID, frontTries, e.ID)
}

func parseDocument(m *streams.Message) (*document.Record, error) {
	r, err := document.Parse(m.Subject, m.Sequence, m.Header, m.Data, m.Size)
	return &r, err
}

// clearing is what is done with a document.
type clearing int

const (
	clearOlder  clearing = iota // its records below the last go
	clearAll                    // all go, and it is looked at again
	clearRemove                 // a removal follows, and then all below it go
)

// rowSeq is the sequence of a document's record that a message has or stands for. The cleaner may
// have put a record from below the fence again above it.
func rowSeq(m *streams.Message) uint64 {
	r, err := document.Parse(m.Subject, m.Sequence, m.Header, nil, m.Size)
	if err != nil {
		return m.Sequence
	}
	return r.RowSeq()
}

// clears decides what goes of a document whose last record is r, and up to which sequence,
// with it. What came after the fence stays there too.
func clears(r *document.Record, fence uint64, d tables.Meant) (clearing, uint64) {
	switch {
	case r.RowSeq() > fence, !d.Last:
		return clearOlder, r.Seq - 1
	case d.All:
		return clearAll, r.Seq
	}
	return clearRemove, 0
}

// overwrite removes those of a key's messages that go, and their bytes on disk: a purge leaves
// those in the stream's file.
func (x *Eraser) overwrite(ctx context.Context, s jetstream.Stream, subject string, goes func(*streams.Message) bool) error {
	var seqs []uint64
	front := s.CachedInfo().Config.Name
	if _, err := streams.Headers(ctx, x.js, front, subject, 1, func(m *streams.Message) error {
		if goes(m) {
			seqs = append(seqs, m.Sequence)
		}
		return nil
	}); err != nil {
		return err
	}
	overwriteOrder(seqs)
	for _, seq := range seqs {
		if err := streams.Delete(ctx, x.js, s, seq, true); err != nil {
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

// removeDocument writes a removal of a document. It says nothing of who owned or changed it.
func (x *Eraser) removeDocument(ctx context.Context, w *fronts.Writer, r *document.Record) error {
	now, err := w.Now(ctx)
	if err != nil {
		return err
	}
	changed := schemas.ChangedAfter(r.Changed, now)
	gone := document.Record{
		Topic: r.Topic, Lane: r.Lane, ID: r.ID, Path: r.Path, Op: schemas.OpRemoved, Version: r.Version + 1, Created: min(r.Created, changed),
		Changed: changed, By: "erasure",
	}
	if _, err := w.Put(ctx, fronts.Record{Subject: gone.Subject(), Header: gone.Header(), Expect: r.Expect(), For: fronts.End}); err != nil {
		return fmt.Errorf("erase: document %q: %w", r.ID, err)
	}
	return nil
}

// frontHolding counts the records of a front that an erasure may mean. Of one by users
// alone those are told by their headers; what a filter means is gone once it is erased.
func (x *Eraser) frontHolding(ctx context.Context, e *ledger.Erasure) (Holding, error) {
	h := Holding{Stream: e.Front}
	_, err := streams.Headers(ctx, x.js, e.Front, schemas.SourceTopicFilter(e.Front, e.Topic), 1, func(msg *streams.Message) error {
		seq, changed, user, err := frontSays(e.Front, msg)
		if err != nil || seq > e.Fence || changed < e.From || changed > e.To {
			return nil
		}
		if len(e.Users) > 0 && !slices.Contains(e.Users, user) || e.Where != "" && e.State == ledger.Erased {
			return nil
		}
		h.Messages++
		return nil
	})
	return h, err
}

// frontSays reads which sequence the row of a front's record has, when it was written, and of
// whom it is.
func frontSays(front string, m *streams.Message) (seq uint64, changed int64, user string, err error) {
	if front == schemas.StreamTimers {
		r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
		return m.Sequence, r.Changed, r.User, err
	}
	r, err := document.Parse(m.Subject, m.Sequence, m.Header, nil, m.Size)
	return r.RowSeq(), r.Changed, r.User, err
}
