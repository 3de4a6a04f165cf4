package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/schemas"
)

// walk is one read over a range of time: first what is in EVENTS, then shard by
// shard in the direction of the page, months as they come. The types of its steps keep
// the order of the reads.
type walk struct {
	r       *Reader
	p       *plan
	months  []schemas.Month // not loaded yet, in the page's direction
	stride  int             // how many of them to load next
	queue   []recent.Shard  // loaded and not read yet, likewise
	pending *recent.Pending // in EVENTS, above the checkpoints
	seen    seenFrames      // frames that were opened
	read    []string        // public names of the shards that were read
	// freshBytes are those of frames that were opened, encoded; cut says that some
	// were not.
	freshBytes int
	cut        bool
	missing    bool // frames above a head had left SHARDS
	gone       bool // frames were purged while they were counted
}

// begin begins the walk of a plan, once more where its snapshot was outdated.
func (r *Reader) begin(ctx context.Context, p *plan) (*walk, error) {
	w, err := r.walk(ctx, p)
	if ctx.Err() == nil && p.snapshot.Outdated(w.pending) {
		if p.snapshot, err = p.snapshot.Again(ctx); err != nil {
			return nil, err
		}
		w, err = r.walk(ctx, p)
	}
	return w, err
}

func (r *Reader) walk(ctx context.Context, p *plan) (*walk, error) {
	w := &walk{r: r, p: p, stride: 1, seen: seenFrames{}}
	var loaded []schemas.Month
	var pending *recent.Pending
	g, gctx := fanout.WithContext(ctx)
	g.Go(func() (err error) {
		if w.months, err = p.snapshot.Months(gctx, p.span()); err != nil {
			return err
		}
		months := w.months
		err = w.load(gctx, MaxPageShards)
		loaded = months[:len(months)-len(w.months)]
		return err
	})
	g.Go(func() (err error) { pending, err = p.snapshot.Pending(gctx, p.topic.Lanes, p.span()); return err })
	if err := g.Wait(); err != nil {
		return w, err
	}
	w.pending, w.cut = pending, pending.Cut
	p.snapshot.Follow(p.span(), loaded[:min(len(loaded), monthsAtOnce)])
	return w, nil
}

// load makes the queue longer than n, as long as there are months: the first
// alone, which most pages need, then some at once.
func (w *walk) load(ctx context.Context, n int) error {
	for len(w.queue) <= n && len(w.months) > 0 {
		loaded := make([][]recent.Shard, min(len(w.months), w.stride))
		g, gctx := fanout.WithContext(ctx)
		for i := range loaded {
			g.Go(func() (err error) {
				loaded[i], err = w.p.snapshot.Shards(gctx, w.months[i], w.p.span())
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		w.queue, w.months, w.stride = append(w.queue, slices.Concat(loaded...)...), w.months[len(loaded):], monthsAtOnce
	}
	return nil
}

// monthsAtOnce is how many months are asked at once: of a topic with one shard a
// month, those of one page.
const monthsAtOnce = MaxPageShards

// above reads what SHARDS has above the heads of shards.
func (w *walk) above(ctx context.Context, shards []recent.Shard) (*recent.Above, error) {
	above, err := w.p.snapshot.Above(ctx, shards, w.p.span())
	if err == nil {
		w.missing, w.cut = w.missing || above.Missing, w.cut || above.Cut
	}
	return above, err
}

// notes are what the reader should know of the answer.
func (w *walk) notes() []string {
	var notes []string
	if w.cut {
		notes = append(notes, fmt.Sprintf("more of this range is not stored yet than one answer reads, %d MiB or %d frames; events may be missing here until they are stored", maxFreshBytes>>20, recent.MaxFrames))
	}
	if w.gone {
		notes = append(notes, "frames left the stream while they were counted; ask again for the exact count")
	}
	return notes
}

// rows reads the page's rows, shard by shard in the page's direction, with those of
// EVENTS beside the first, until no unread shard can have an event that belongs on it. bound is
// set when it stopped for MaxPageShards: nothing at or beyond it may be returned.
func (w *walk) rows(ctx context.Context) (rows []row, bound *int64, err error) {
	p := w.p
	if len(w.queue) == 0 {
		rows, _, err = w.evaluate(ctx, w.pending.Frames, nil)
		return rows, nil, err
	}
	waiting := w.pending.Frames
	for len(w.queue) > 0 {
		group := w.queue[:min(MaxPageShards, len(w.queue))]
		if rows, err = w.readGroup(ctx, group, waiting, rows); err != nil {
			return nil, nil, err
		}
		waiting = nil
		w.queue = w.queue[len(group):]
		if err := w.load(ctx, 0); err != nil {
			return nil, nil, err
		}
		if len(w.queue) == 0 {
			break
		}
		next := p.near(w.queue[0].MinTs, w.queue[0].MaxTs)
		if len(rows) > p.limit && p.beyond(next, rows[p.limit].ts) {
			break // full, and every unread shard lies further on
		}
		if p.beyond(next, p.start()) {
			return rows, &next, nil
		}
		// The unread shard reaches as far as the page's own beginning: stopping
		// here would bring the next page nothing nearer. Read on.
	}
	return rows, nil, nil
}

// readGroup adds the rows of some shards, of each what the streams have above its
// head and what ClickHouse has of it, and of other frames that wait. Which frames
// there are is read before ClickHouse is: what is stored meanwhile is met in both.
//
// Fresh events are the newest, mostly: so the newest page reads them first, and the
// oldest last. Whichever comes first spares the other what the page has no use for.
func (w *walk) readGroup(ctx context.Context, group []recent.Shard, waiting []recent.Meta, rows []row) ([]row, error) {
	above, err := w.above(ctx, group)
	if err != nil {
		return nil, err
	}
	frames := append(recent.Unrepeated(waiting, above.Frames), above.Frames...)
	if !w.p.asc {
		rows, gone, err := w.evaluate(ctx, frames, rows)
		if err != nil {
			return nil, err
		}
		if gone {
			above.Gone()
		}
		return w.addNearest(ctx, above, rows)
	}
	if rows, err = w.addNearest(ctx, above, rows); err != nil {
		return nil, err
	}
	rows, gone, err := w.evaluate(ctx, frames, rows)
	if err != nil || !gone {
		return rows, err
	}
	above.Gone()
	return w.addStored(ctx, above, rows, nil, w.p.settings())
}
