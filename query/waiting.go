package query

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

// unrouted are the frames of a lane above its checkpoint that meet the walk's
// range, as of after the checkpoint was read.
func (w *walk) unrouted(ctx context.Context, lane string) ([]due, error) {
	p := w.p
	at := place{schemas.StreamEvents, schemas.LaneFilter(p.topic.Name, lane)}
	routed := p.checkpoints[lane].Source
	t := w.r.dir.track(at)
	if err := t.hold(ctx); err != nil {
		return nil, err
	}
	defer t.release()
	if t.next < routed+1 || t.from > routed+1 {
		t.begin(routed+1, routed+1)
	}
	err := t.advance(ctx, w.r, p.positionsRead)
	if errors.Is(err, errUntracked) {
		return w.scan(ctx, at, routed+1, routed)
	}
	if err != nil {
		return nil, err
	}
	t.passed(routed, time.Now())
	return t.above(routed, p.lower(), p.upper()), nil
}

// unstored are the frames of an open shard above its head, likewise.
func (w *walk) unstored(ctx context.Context, s *part) ([]due, error) {
	p, head := w.p, s.stored.Head
	at := place{schemas.StreamShards, s.tail.subject}
	t := w.r.dir.track(at)
	if err := t.hold(ctx); err != nil {
		return nil, err
	}
	defer t.release()
	if t.next == 0 || t.from > head+1 || t.last == nil || t.last.Pos < head && t.last.Pos < s.tail.Pos {
		seq, err := registry.FrameBefore(ctx, w.r.shards, s.tail.subject, head+1, s.tail.Pos, s.tail.seq)
		if err != nil {
			return nil, err
		}
		t.begin(head+1, seq)
	}
	if t.last == nil || t.last.Pos < s.tail.Pos {
		err := t.advance(ctx, w.r, p.positionsRead)
		if errors.Is(err, errUntracked) {
			seq, err := registry.FrameBefore(ctx, w.r.shards, s.tail.subject, head+1, s.tail.Pos, s.tail.seq)
			if err != nil {
				return nil, err
			}
			return w.scan(ctx, at, seq, head)
		}
		if err != nil {
			return nil, err
		}
	}
	t.passed(head, time.Now())
	return t.above(head, p.lower(), p.upper()), nil
}

// scan reads the headers of a place from a sequence on, for one walk whose frames
// are too many to keep. Of those above floor that meet the range it holds the
// nearest in the page's direction, and the walk says so when there are more.
func (w *walk) scan(ctx context.Context, at place, from, floor uint64) (out []due, err error) {
	p := w.p
	err = scanHeaders(ctx, w.r.stream(at.stream), at.filter, jetstream.DeliverByStartSequencePolicy, max(from, 1), func(msg jetstream.Msg, seq uint64) error {
		h, placed, ok := headingOf(at.stream, msg.Headers(), seq, payloadSize(msg.Headers()))
		if !ok || placed.Cleared != "" || h.key <= floor || h.maxTs < p.lower() || h.minTs > p.upper() {
			return nil
		}
		out = append(out, due{h, at})
		if len(out) > maxHeadings {
			w.cut.Store(true)
			inOrder(out, p.asc)
			out = slices.Delete(out, maxHeadings/2, len(out))
		}
		return nil
	})
	return out, err
}

// lastFrames reads the last frames of open shards: by their tracks where a query
// advanced them a moment ago, else from the stream.
func (r *Reader) lastFrames(ctx context.Context, p *plan, subjects []string, into map[schemas.Shard]tail) error {
	var mu sync.Mutex
	var cold []string
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(freshReaders)
	for _, s := range subjects {
		at := place{schemas.StreamShards, s}
		if len(subjects) > warmShards || !r.dir.known(at) {
			cold = append(cold, s)
			continue
		}
		g.Go(func() error {
			last, err := r.lastOf(gctx, p, at)
			mu.Lock()
			defer mu.Unlock()
			if err == nil && last != nil {
				into[last.shard] = *last
			} else if err == nil {
				cold = append(cold, s)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return r.lastInStream(ctx, cold, into)
}

// warmShards is how many open shards are asked one by one: beyond, one request for
// the last messages of all costs less, though it brings their payloads.
const warmShards = 16

// lastOf is the last frame of a track that is brought to the end; nil when it
// does not know.
func (r *Reader) lastOf(ctx context.Context, p *plan, at place) (*tail, error) {
	t := r.dir.track(at)
	if err := t.hold(ctx); err != nil {
		return nil, err
	}
	defer t.release()
	if t.last == nil {
		return nil, nil
	}
	if err := t.advance(ctx, r, p.positionsRead); err != nil && !errors.Is(err, errUntracked) {
		return nil, err
	}
	return t.last, nil
}

// wholeUpTo hears the last frame of a shard that is stored whole, so that its track
// begins behind it.
func (r *Reader) wholeUpTo(last *tail, asked time.Time) {
	t := r.dir.track(place{schemas.StreamShards, last.subject})
	select {
	case t.turn <- struct{}{}:
		defer t.release()
		if t.last == nil {
			t.begin(last.Pos+1, last.seq+1)
			t.last, t.begun = last, asked
		}
	default:
	}
}
