package cleaner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
)

// leaving is what a walk takes out of a front. Each part of it is safe for itself, and
// may be done again.
type leaving struct {
	c *Cleaner
	w *walk

	puts    []fronts.Record
	as      []act // stub or refresh, of each of puts
	bytes   int
	purging []purging
	batches errgroup.Group // of stubs and refreshes, under way

	mu   sync.Mutex
	done Done
}

func newLeaving(c *Cleaner, w *walk) *leaving {
	l := &leaving{c: c, w: w}
	l.batches.SetLimit(batchesAtOnce)
	return l
}

// purging is a key of which the messages up to a sequence go, with it.
type purging struct {
	subject string
	upTo    uint64
}

const (
	// maxPutBytes bounds the bodies of a batch.
	maxPutBytes = 8 << 20
	// batchesAtOnce is how many batches are under way: NATS commits one while it takes the next.
	batchesAtOnce = 2
	// purges is how many are under way at once.
	purges = 8
)

// count notes something that was done.
func (l *leaving) count(f func(*Done)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.done)
}

// put notes a stub or refresh.
func (l *leaving) put(ctx context.Context, r fronts.Record, as act) {
	l.puts, l.as, l.bytes = append(l.puts, r), append(l.as, as), l.bytes+len(r.Data)
	if len(l.puts) >= fronts.MaxBatch || l.bytes >= maxPutBytes {
		l.flushPuts(ctx)
	}
}

// purge notes a purge of one key's messages.
func (l *leaving) purge(ctx context.Context, subject string, upTo uint64) error {
	l.purging = append(l.purging, purging{subject, upTo})
	if len(l.purging) < fronts.MaxBatch {
		return nil
	}
	return l.flushPurges(ctx)
}

// end does the rest, and says what was done.
func (l *leaving) end(ctx context.Context) (Done, error) {
	l.flushPuts(ctx)
	err := errors.Join(l.flushPurges(ctx), l.batches.Wait())
	return l.done, err
}

// flushPuts has what was noted written, and waits until there is room for it.
func (l *leaving) flushPuts(ctx context.Context) {
	rs, as := l.puts, l.as
	l.puts, l.as, l.bytes = nil, nil, 0
	if len(rs) > 0 {
		l.batches.Go(func() error { return l.write(ctx, rs, as) })
	}
}

// write writes stubs and refreshes in one atomic batch. Where one of them is refused,
// because its key changed meanwhile or the front is nearly full, each goes for itself.
func (l *leaving) write(ctx context.Context, rs []fronts.Record, as []act) error {
	if err := l.c.cfg.MayTake(ctx); err != nil {
		return fmt.Errorf("cleaner: %w", err)
	}
	w, err := l.c.writer(ctx, l.w.topic.Front())
	if err != nil {
		return err
	}
	l.c.cfg.Crash("cleaner.before-stubs")
	_, err = w.PutAll(ctx, rs)
	l.c.cfg.Crash("cleaner.after-stubs")
	if err == nil {
		for _, a := range as {
			l.wrote(a)
		}
		return nil
	}
	if !errors.Is(err, fronts.ErrConflict) && !errors.Is(err, fronts.ErrFull) {
		return fmt.Errorf("cleaner: %w", err)
	}
	return l.singly(ctx, w, rs, as)
}

func (l *leaving) singly(ctx context.Context, w *fronts.Writer, rs []fronts.Record, as []act) error {
	errs := make([]error, len(rs))
	var wg sync.WaitGroup
	for i := range rs {
		wg.Go(func() { _, errs[i] = w.Put(ctx, rs[i]) })
	}
	wg.Wait()
	var failed error
	for i, err := range errs {
		switch {
		case err == nil:
			l.wrote(as[i])
		case errors.Is(err, fronts.ErrConflict):
			l.count(func(d *Done) { d.Lost++ }) // it has a newer record, which leaves in its time
		default:
			failed = fmt.Errorf("cleaner: %w", err)
		}
	}
	return failed
}

// wrote counts a stub or refresh.
func (l *leaving) wrote(as act) {
	l.count(func(d *Done) {
		if as == stub {
			d.Stubbed++
		} else {
			d.Refreshed++
		}
	})
}

// flushPurges purges by literal subjects, each up to what was seen of it. By a wildcard a
// purge would lock the stream for half a second a million keys.
func (l *leaving) flushPurges(ctx context.Context) error {
	ps := l.purging
	l.purging = nil
	if len(ps) == 0 {
		return nil
	}
	s, err := streams.Open(ctx, l.c.js, l.w.topic.Front())
	if err == nil {
		err = l.c.cfg.MayTake(ctx)
	}
	if err != nil {
		return fmt.Errorf("cleaner: %w", err)
	}
	var g errgroup.Group
	g.SetLimit(purges)
	l.c.cfg.Crash("cleaner.before-purges")
	for _, p := range ps {
		g.Go(func() error {
			return streams.PurgeWith(ctx, l.c.js, s, p.subject, streams.Unneeded, jetstream.WithPurgeSequence(p.upTo+1))
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("cleaner: %w", err)
	}
	l.c.cfg.Crash("cleaner.after-purges")
	l.count(func(d *Done) { d.Purged += len(ps) })
	return nil
}
