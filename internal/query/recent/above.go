package recent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Above is shards after what SHARDS has above their heads was read. Only now may their rows
// be read in ClickHouse, up to those heads or beyond: what is stored meanwhile is met in
// both.
type Above struct {
	// Frames are those above the heads that meet the range.
	Frames []Meta
	// Missing says that frames above a head had left SHARDS, Cut that there are more than
	// one read can meet.
	Missing, Cut bool

	shards []Shard
	heads  *headCache
}

// Shards are those that were asked for, as they were when their heads were read.
func (a *Above) Shards() []Shard { return a.shards }

// Part is the shards from one to another, without their frames.
func (a *Above) Part(from, to int) *Above { return &Above{shards: a.shards[from:to], heads: a.heads} }

// Gone is told that frames above the heads were no longer in SHARDS: they were stored since
// and then purged. So what ClickHouse was seen to have of the shards is forgotten, and
// their rows may be of any time.
func (a *Above) Gone() {
	for i := range a.shards {
		a.shards[i].gone(a.heads)
	}
}

func (s *Shard) gone(heads *headCache) {
	s.stored.Rows, s.stored.MinTs, s.stored.MaxTs = max(s.stored.Rows, 1), 0, math.MaxInt64
	heads.forget(s.ID)
}

// Above reads which frames SHARDS has above the heads of shards.
func (s *Snapshot) Above(ctx context.Context, shards []Shard, r Range) (*Above, error) {
	f := s.x.cache.tailer(schemas.StreamShards, s.topic)
	if err := f.hold(ctx); err != nil {
		return nil, err
	}
	defer f.release()
	waiting := make([][]Meta, len(shards))
	var missing, cut atomic.Bool
	g, gctx := fanout.WithContext(ctx)
	g.SetLimit(maxReads)
	for i := range shards {
		e := &shards[i]
		if e.tail == nil {
			continue
		}
		t, head := f.frameIndex(e.tail.Ref.Subject()), e.stored.Head
		g.Go(func() error {
			if !t.inStep || t.from > head+1 || t.last == nil || t.last.Pos < e.tail.Pos {
				seq, err := streams.FrameBefore(gctx, s.x.js, e.tail.Ref.Subject(), head+1, e.tail.Pos, e.tail.Seq)
				if err != nil {
					return err
				}
				t.begin(head+1, seq)
				err = f.catchUp(gctx, s.x, t)
				if errors.Is(err, errUntracked) {
					waiting[i], err = s.x.scan(gctx, t.place, seq, head, r, &cut, nil)
				}
				if err != nil || !t.inStep {
					return err
				}
			}
			if t.missing(head) {
				missing.Store(true)
				e.gone(s.x.heads)
			}
			t.passed(head, time.Now())
			waiting[i] = t.above(head, r.From, r.To)
			return nil
		})
	}
	err := g.Wait()
	return &Above{slices.Concat(waiting...), missing.Load(), cut.Load(), shards, s.x.heads}, err
}

// lastFrames reads the last frames of open shards: from their frame indexes, brought to
// the end by one request, or, where there is no frame index, from the stream, asked when it
// says.
func (s *Snapshot) lastFrames(ctx context.Context, keys []schemas.ShardRef, into map[schemas.Shard]streams.Tail) (asked time.Time, err error) {
	f := s.x.cache.tailer(schemas.StreamShards, s.topic)
	err = f.advance(ctx, s.x, s.read)
	if held := f.hold(ctx); held != nil {
		return asked, held
	}
	var cold []string
	for _, k := range keys {
		if t := f.indexes[k.Subject()]; t != nil && t.inStep && t.last != nil {
			into[t.last.Ref.ID] = *t.last
		} else {
			cold = append(cold, k.Subject())
		}
	}
	f.release()
	if err != nil {
		return asked, err
	}
	return time.Now(), s.x.lastInStream(ctx, cold, into)
}

// lastInStream reads the last frames of shards' subjects.
func (x *Index) lastInStream(ctx context.Context, subjects []string, into map[schemas.Shard]streams.Tail) error {
	err := streams.LatestOf(ctx, x.js, schemas.StreamShards, subjects, func(msg *streams.Message) error {
		t, err := streams.TailOf(msg)
		if err == nil { // what is not a frame is not a tail; verify names it
			into[t.Ref.ID] = t
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("query: last frames: %w", err)
	}
	return nil
}

// wholeUpTo hears the last frame, as it was after asked, of a shard that is stored
// whole, so that its frame index begins behind it.
func (x *Index) wholeUpTo(last *streams.Tail, asked time.Time) {
	f := x.cache.tailer(schemas.StreamShards, last.Ref.Topic)
	select {
	case f.sequence <- struct{}{}:
	default:
		return
	}
	defer f.release()
	t := f.indexes[last.Ref.Subject()]
	// What the tailer read later is not in the tail.
	if f.next == 0 || f.ended.After(asked) || len(f.indexes) >= maxIndexes || t != nil && t.inStep {
		return
	}
	t = f.frameIndex(last.Ref.Subject())
	t.begin(last.Pos+1, last.Seq+1)
	t.last, t.inStep, t.used = last, true, time.Now()
}
