package recent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/streams"
)

// Fetch reads whole frames, in the order given. One that is no longer in its
// stream is left out, and gone says so: it is stored by now, or was dropped.
func (s *Snapshot) Fetch(ctx context.Context, frames []Meta) (out []Frame, gone bool, err error) {
	whole := make([]*Frame, len(frames))
	var missing []int // of frames
	for i, d := range frames {
		if d.kept != nil {
			whole[i] = d.kept.Load()
		}
		if whole[i] == nil {
			missing = append(missing, i)
		}
	}
	slices.SortFunc(missing, func(a, b int) int {
		x, y := &frames[a], &frames[b]
		return cmp.Or(cmp.Compare(x.stream, y.stream), cmp.Compare(x.filter, y.filter), cmp.Compare(x.seq, y.seq))
	})
	g, gctx := fanout.WithContext(ctx)
	g.SetLimit(maxReads)
	for len(missing) > 0 {
		n := 1
		for n < len(missing) && follows(&frames[missing[n-1]], &frames[missing[n]]) {
			n++
		}
		run := missing[:n]
		missing = missing[n:]
		g.Go(func() error { return s.x.fetchRun(gctx, frames, run, whole) })
	}
	if err := g.Wait(); err != nil {
		if errors.Is(err, errRenumbered) {
			s.x.cache.forget()
		}
		return nil, false, err
	}
	for _, f := range whole {
		if f == nil {
			gone = true
			continue
		}
		out = append(out, *f)
	}
	return out, gone, nil
}

// follows says whether b is the message after a under the same filter.
func follows(a, b *Meta) bool { return a.place == b.place && a.nth > 0 && b.nth == a.nth+1 }

// fetchRun reads frames that follow one another.
func (x *Index) fetchRun(ctx context.Context, frames []Meta, run []int, whole []*Frame) error {
	first := &frames[run[0]]
	left := run
	return streams.Gather(ctx, x.js, first.stream, first.filter, first.seq, func() int { return len(left) }, func(msg *streams.Message) (bool, error) {
		for len(left) > 0 && frames[left[0]].seq < msg.Sequence {
			left = left[1:] // purged meanwhile
		}
		if len(left) == 0 || frames[left[0]].seq > msg.Sequence {
			return len(left) > 0, nil
		}
		d := &frames[left[0]]
		f, err := frameOf(d.stream, msg)
		if err == nil && (f.MinTs != d.minTs || f.MaxTs != d.maxTs || f.Source != d.source) {
			err = fmt.Errorf("query: message %d of %s: %w", msg.Sequence, d.stream, errRenumbered)
		}
		whole[left[0]], left = &f, left[1:]
		return err == nil && len(left) > 0, err
	})
}
