package query

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// readEvents brings the feed of EVENTS to its end as it stands after since.
func (r *Reader) readEvents(ctx context.Context, topic string, since time.Time) error {
	return r.dir.feed(schemas.StreamEvents, topic).advance(ctx, r, since)
}

// unrouted are the frames of EVENTS above the checkpoints that meet the walk's
// range, as of after the checkpoints were read and the query began.
func (w *walk) unrouted(ctx context.Context) ([]due, error) {
	p := w.p
	f := w.r.dir.feed(schemas.StreamEvents, p.topic.Name)
	if err := f.advance(ctx, w.r, p.eventsSince); err != nil {
		return nil, err
	}
	if err := f.hold(ctx); err != nil {
		return nil, err
	}
	defer f.release()
	waiting := make([][]due, p.topic.Lanes)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(freshReaders)
	for lane := range waiting {
		token := strconv.Itoa(lane)
		t, routed := f.track(schemas.LaneFilter(p.topic.Name, token)), p.standing.checkpoints[token].Source
		g.Go(func() (err error) {
			if t.reach(routed + 1); !t.inStep {
				err = f.catchUp(gctx, w.r, t)
			}
			if errors.Is(err, errUntracked) {
				waiting[lane], err = w.scan(gctx, t.place, routed+1, routed)
			}
			if err == nil && t.inStep {
				if t.other > routed {
					w.others.Store(true)
				}
				t.passed(routed, time.Now())
				waiting[lane] = t.above(routed, p.lower(), p.upper())
			}
			return err
		})
	}
	err := g.Wait()
	return slices.Concat(waiting...), err
}

// frames are those SHARDS has of the parts above their heads.
func (w *walk) frames(ctx context.Context, parts []part) ([]due, error) {
	p := w.p
	f := w.r.dir.feed(schemas.StreamShards, p.topic.Name)
	if err := f.hold(ctx); err != nil {
		return nil, err
	}
	defer f.release()
	waiting := make([][]due, len(parts))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(freshReaders)
	for i := range parts {
		s := &parts[i]
		if s.tail == nil {
			continue
		}
		t, head := f.track(s.tail.Ref.Subject()), s.stored.Head
		g.Go(func() error {
			if !t.inStep || t.from > head+1 || t.last == nil || t.last.Pos < s.tail.Pos {
				seq, err := streams.FrameBefore(gctx, w.r.js, s.tail.Ref.Subject(), head+1, s.tail.Pos, s.tail.Seq)
				if err != nil {
					return err
				}
				t.begin(head+1, seq)
				err = f.catchUp(gctx, w.r, t)
				if errors.Is(err, errUntracked) {
					waiting[i], err = w.scan(gctx, t.place, seq, head)
				}
				if err != nil || !t.inStep {
					return err
				}
			}
			if t.missing(head) {
				anywhere(parts[i : i+1])
				w.missing.Store(true)
				w.r.heads.forget(s.ID)
			}
			t.passed(head, time.Now())
			waiting[i] = t.above(head, p.lower(), p.upper())
			return nil
		})
	}
	err := g.Wait()
	return slices.Concat(waiting...), err
}

// scan reads the headers of a place from a sequence on, for one walk whose frames
// are too many to keep. Of those above floor that meet the range it holds the
// nearest in the page's direction, and the walk says so when there are more.
func (w *walk) scan(ctx context.Context, at place, from, floor uint64) (out []due, err error) {
	p := w.p
	err = w.r.Headers(ctx, at.stream, at.filter, from, func(msg *streams.Message) error {
		h, placed, ok := headingOf(at.stream, msg.Header, msg.Sequence, msg.Time.UnixNano(), min(msg.Size, schemas.MaxMessageBytes))
		if !ok && at.stream == schemas.StreamEvents {
			w.others.Store(true)
		}
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

// lastFrames reads the last frames of open shards: from their tracks, brought to
// the end by one request, or, where there is no track, from the stream, asked when it
// says.
func (r *Reader) lastFrames(ctx context.Context, p *plan, subjects []string, into map[schemas.Shard]streams.Tail) (asked time.Time, err error) {
	f := r.dir.feed(schemas.StreamShards, p.topic.Name)
	err = f.advance(ctx, r, p.standing.read)
	if held := f.hold(ctx); held != nil {
		return asked, held
	}
	var cold []string
	for _, s := range subjects {
		if t := f.tracks[s]; t != nil && t.inStep && t.last != nil {
			into[t.last.Ref.ID] = *t.last
		} else {
			cold = append(cold, s)
		}
	}
	f.release()
	if err != nil {
		return asked, err
	}
	return time.Now(), r.lastInStream(ctx, cold, into)
}

// wholeUpTo hears the last frame, as it was after asked, of a shard that is stored
// whole, so that its track begins behind it.
func (r *Reader) wholeUpTo(last *streams.Tail, asked time.Time) {
	f := r.dir.feed(schemas.StreamShards, last.Ref.Topic)
	select {
	case f.turn <- struct{}{}:
	default:
		return
	}
	defer f.release()
	t := f.tracks[last.Ref.Subject()]
	// What the feed read later is not in the tail.
	if f.next == 0 || f.ended.After(asked) || len(f.tracks) >= maxTracks || t != nil && t.inStep {
		return
	}
	t = f.track(last.Ref.Subject())
	t.begin(last.Pos+1, last.Seq+1)
	t.last, t.inStep, t.used = last, true, time.Now()
}
