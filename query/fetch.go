package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// fetch reads whole frames, in the order given. One that is no longer in its
// stream is left out, and gone says so: it is stored by now, or was dropped.
func (r *Reader) fetch(ctx context.Context, frames []due) (out []freshFrame, gone bool, err error) {
	whole := make([]*freshFrame, len(frames))
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
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(freshReaders)
	for len(missing) > 0 {
		n := 1
		for n < len(missing) && follows(&frames[missing[n-1]], &frames[missing[n]]) {
			n++
		}
		run := missing[:n]
		missing = missing[n:]
		g.Go(func() error { return r.fetchRun(gctx, frames, run, whole) })
	}
	if err := g.Wait(); err != nil {
		if errors.Is(err, errTurned) {
			r.dir.forget()
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
func follows(a, b *due) bool { return a.place == b.place && a.nth > 0 && b.nth == a.nth+1 }

// fetchRun reads frames that follow one another.
func (r *Reader) fetchRun(ctx context.Context, frames []due, run []int, whole []*freshFrame) error {
	first := &frames[run[0]]
	left := run
	return streams.Gather(ctx, r.js, first.stream, first.filter, first.seq, func() int { return len(left) }, func(msg *streams.Message) (bool, error) {
		for len(left) > 0 && frames[left[0]].seq < msg.Sequence {
			left = left[1:] // purged meanwhile
		}
		if len(left) == 0 || frames[left[0]].seq > msg.Sequence {
			return len(left) > 0, nil
		}
		d := &frames[left[0]]
		f, err := freshFrameOf(d.stream, msg)
		if err == nil && (f.MinTs != d.minTs || f.MaxTs != d.maxTs || f.source != d.source) {
			err = fmt.Errorf("query: message %d of %s: %w", msg.Sequence, d.stream, errTurned)
		}
		whole[left[0]], left = &f, left[1:]
		return err == nil && len(left) > 0, err
	})
}

// chunks gives f the frames in turn, opened in portions: small ones at first, for a
// page that is soon full, then as much as one statement takes. It ends when f has
// enough, or at maxFreshBytes, which the walk's notes then tell.
func (w *walk) chunks(ctx context.Context, frames []due, enough func(next *due) bool, f func([]freshFrame) error) (gone bool, err error) {
	for portion := firstPortionBytes; len(frames) > 0 && !enough(&frames[0]); portion = min(4*portion, maxStatementBytes) {
		n, raw := 0, 0
		for ; n < len(frames) && (n == 0 || raw < portion); n++ {
			raw += int(frames[n].rawBytes)
			w.freshBytes += int(frames[n].bytes)
		}
		if w.freshBytes > maxFreshBytes {
			w.cut.Store(true)
			return gone, nil
		}
		some, missed, err := w.r.fetch(ctx, frames[:n])
		if err != nil {
			return gone, err
		}
		gone = gone || missed
		if err := f(some); err != nil {
			return gone, err
		}
		frames = frames[n:]
	}
	return gone, nil
}

// unrepeated drops the frames of EVENTS that are among those of SHARDS.
func unrepeated(events, shards []due) []due {
	routed := make(map[uint64][]schemas.Source, len(shards)) // by sequence
	for i := range shards {
		s := shards[i].source
		routed[s.Seq] = append(routed[s.Seq], s)
	}
	return slices.DeleteFunc(slices.Clone(events), func(d due) bool { return slices.ContainsFunc(routed[d.source.Seq], d.source.Is) })
}
