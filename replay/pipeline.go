package replay

import (
	"cmp"
	"context"

	"github.com/almanac-events/almanac/internal/fanout"
	"golang.org/x/sync/semaphore"
)

// What a replay holds ahead of its sink, rendered and not: by position in all, by
// time of all shards that are open at once. A unit counts with its events as text.
const (
	maxAhead = 64 << 20
	// rowText is what the names of a line's columns take, about.
	rowText = 256
	// renderers is how many units are rendered at once; more than two cores read
	// faster than one stream gives.
	renderers = 4
	// maxUnits bounds the units under way by number.
	maxUnits = 256
)

// stream is units under way: rendered side by side, taken in order.
type stream struct {
	units chan *unit
	space *semaphore.Weighted
	// buffers are for units that come, from those that were taken.
	buffers *buffers
	stop    context.CancelFunc
	group   *fanout.Group
	ctx     context.Context
}

// pipe starts to read shards one after the other, each behind its mark, and to
// render them with so many workers, at most ahead bytes before who takes them.
func (j *Job) pipe(ctx context.Context, shards []*shard, workers, batch int, ahead int64, single bool) *stream {
	ctx, cancel := context.WithCancel(ctx)
	g, gctx := fanout.WithContext(ctx)
	st := &stream{units: make(chan *unit, min(maxUnits, 4*workers*batch)), space: semaphore.NewWeighted(ahead), buffers: &j.buffers, stop: cancel, group: g, ctx: gctx}
	work := make(chan *unit)
	g.Go(func() error {
		defer close(st.units)
		defer close(work)
		for _, s := range shards {
			err := j.read(gctx, s, s.at, batch, func(u *unit) error {
				u.ready = make(chan struct{})
				u.weight = min(ahead, int64(3*u.size()))
				if err := st.space.Acquire(gctx, u.weight); err != nil {
					return err
				}
				for _, c := range []chan *unit{st.units, work} {
					select {
					case c <- u:
					case <-gctx.Done():
						return gctx.Err()
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	for range workers {
		r := j.newRenderer(single)
		g.Go(func() error {
			for u := range work {
				err := r.render(gctx, u)
				if err != nil {
					return err
				}
				close(u.ready)
			}
			return nil
		})
	}
	return st
}

// size is what a unit's events take, about.
func (u *unit) size() int {
	n := u.frame.RawBytes + rowText*u.expected
	for _, p := range u.pieces {
		n += (p.to - p.from) * storedRowBytes
	}
	return n
}

// storedRowBytes is an event's share of a stored block, about.
const storedRowBytes = 256

// next is the next unit, or nil at the end. The unit before it is given back.
func (st *stream) next(before *unit) (*unit, error) {
	if before != nil {
		st.space.Release(before.weight)
		st.buffers.put(before.lines)
		before.lines = nil
	}
	u, ok := <-st.units
	if !ok {
		return nil, st.group.Wait()
	}
	select {
	case <-u.ready:
		return u, nil
	case <-st.ctx.Done():
	}
	select {
	case <-u.ready: // rendered, and then the end came
		return u, nil
	default:
		return nil, cmp.Or(st.group.Wait(), st.ctx.Err())
	}
}

// close ends a stream that is not wanted any more.
func (st *stream) close() {
	st.stop()
	_ = st.group.Wait()
}
