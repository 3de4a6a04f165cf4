package recent

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// maxReads bounds the requests to the streams under way for one read.
const maxReads = 8

// Pending is what EVENTS has above a snapshot's checkpoints.
type Pending struct {
	// Frames are those that meet the range, without parts of keyed requests that their lanes were given before.
	Frames []Meta
	// Cut says that there are more than one read can meet.
	Cut bool
	// others: messages that are not frames are among them, such as bare JSON. Their events
	// are read in SHARDS.
	others atomic.Bool
}

// Pending reads which frames of a topic's lanes are accepted and not routed yet, as of
// after the read began.
func (s *Snapshot) Pending(ctx context.Context, lanes int, r Range) (*Pending, error) {
	f := s.x.cache.tailer(schemas.StreamEvents, s.topic)
	if err := f.advance(ctx, s.x, s.since); err != nil {
		return nil, err
	}
	if err := f.hold(ctx); err != nil {
		return nil, err
	}
	defer f.release()
	out := &Pending{}
	waiting := make([][]Meta, lanes)
	var cut atomic.Bool
	g, gctx := fanout.WithContext(ctx)
	g.SetLimit(maxReads)
	for lane := range waiting {
		token := strconv.Itoa(lane)
		t, routed := f.frameIndex(schemas.LaneFilter(s.topic, token)), s.lanes[token].Source
		g.Go(func() (err error) {
			if t.reach(routed + 1); !t.inStep {
				err = f.catchUp(gctx, s.x, t)
			}
			if errors.Is(err, errUntracked) {
				waiting[lane], err = s.x.scan(gctx, t.place, routed+1, routed, r, &cut, &out.others)
			}
			if err == nil && t.inStep {
				if t.other > routed {
					out.others.Store(true)
				}
				t.passed(routed, time.Now())
				waiting[lane] = t.above(routed, r.From, r.To)
			}
			if err == nil {
				waiting[lane], err = s.unrepeatedParts(gctx, t, token, waiting[lane])
			}
			return err
		})
	}
	err := g.Wait()
	out.Frames, out.Cut = slices.Concat(waiting...), cut.Load()
	return out, err
}

// scan reads the headers of a place from a sequence on, for one read whose frames
// are too many to keep. Of those above floor that meet the range it holds the
// nearest in the read's direction, and sets cut when there are more; others, if given, when
// it meets what is not a frame.
func (x *Index) scan(ctx context.Context, at place, from, floor uint64, r Range, cut, others *atomic.Bool) (out []Meta, err error) {
	_, err = streams.Headers(ctx, x.js, at.stream, at.filter, from, func(msg *streams.Message) error {
		h, placed, ok := frameMetaOf(at.stream, msg.Header, msg.Sequence, msg.Time.UnixNano(), min(msg.Size, schemas.MaxMessageBytes))
		if !ok && others != nil {
			others.Store(true)
		}
		if !ok || placed.Cleared != "" || h.key <= floor || !r.meets(h.minTs, h.maxTs) {
			return nil
		}
		h.part = partOf(at.stream, msg.Header, msg.Subject, msg.Time.UnixNano())
		out = append(out, Meta{h, at})
		if len(out) > MaxFrames {
			cut.Store(true)
			Sort(out, r.Ascending)
			out = slices.Delete(out, MaxFrames/2, len(out))
		}
		return nil
	})
	return out, err
}

// Unrepeated returns the frames of EVENTS that are not among those of SHARDS.
func Unrepeated(events, shards []Meta) []Meta {
	routed := make(map[uint64][]schemas.Source, len(shards)) // by sequence
	for i := range shards {
		s := shards[i].source
		routed[s.Seq] = append(routed[s.Seq], s)
	}
	return slices.DeleteFunc(slices.Clone(events), func(d Meta) bool { return slices.ContainsFunc(routed[d.source.Seq], d.source.Is) })
}
