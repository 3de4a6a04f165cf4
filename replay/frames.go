package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// Frames are asked for in batches and given on when a batch is whole, so that a
// slow sink never holds up an answer of the server. A batch has at most batchFrames
// frames and ends with the one that makes it batchBytes; by time, where many shards
// are read at once, it is one frame.
const (
	batchFrames = 64
	batchBytes  = 4 << 20
)

// read gives f the units of a shard behind a mark, in order, from whichever source
// has them.
func (j *Job) read(ctx context.Context, s *shard, after mark, batch int, f func(*unit) error) error {
	begun, reach := after, uint64(1)
	begun.Number = max(begun.Number, s.from-1)
	if j.target != nil {
		reach = schemas.MaxInFlight
	}
	give := func(u *unit) error {
		if err := begun.agrees(u, reach); err != nil {
			return err
		}
		after = u.end
		return f(u)
	}
	tables, err := j.tableOnly(ctx, s)
	if err != nil {
		return err
	}
	for after.Number < s.to {
		next := max(after.Number+1, s.from)
		if after.Stored && after.Begin != after.Number { // within an insert: only ClickHouse has its units
			if err := j.readGap(ctx, s, &after, next+1, give); err != nil {
				return err
			}
			continue
		}
		upTo := s.to
		for _, span := range tables {
			if span.From <= next && next <= span.To {
				if err := j.readGap(ctx, s, &after, span.To+1, give); err != nil {
					return err
				}
				upTo = 0
				break
			}
			if span.From > next {
				upTo = min(upTo, span.From-1)
			}
		}
		if upTo == 0 {
			continue
		}
		seq, err := streams.FindFrame(ctx, j.r.js, s.subject, next, s.tailSeq)
		if err != nil {
			return err
		}
		first, err := streams.FrameFrom(ctx, j.r.js, s.subject, seq)
		if errors.Is(err, streams.ErrNoFrame) {
			return fmt.Errorf("%w: %s has no frame of %s any more, not even the last; run `almanac verify %s`", ErrLost, schemas.StreamShards, s.Name(), s.Topic)
		}
		if err != nil {
			return err
		}
		if first.Cleared != "" { // only a mark is left of the shard's last frame
			first.Pos++
		}
		if first.Pos > next {
			err = j.readGap(ctx, s, &after, first.Pos, give)
		} else {
			err = j.readFrames(ctx, s, seq, &after, upTo, batch, give)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readGap reads what SHARDS lacks before the frame at first.
func (j *Job) readGap(ctx context.Context, s *shard, after *mark, first uint64, give func(*unit) error) error {
	g := gapBefore(s, *after, first)
	at, err := j.endsAround(ctx, s, g)
	if err != nil {
		return err
	}
	seam, err := g.seam(s, *after, at)
	if err != nil {
		return err
	}
	if err := j.readStored(ctx, s, *after, seam, give); err != nil {
		return err
	}
	*after = mark{Number: seam, Stored: true, Begin: seam} // whatever the filter left of it
	return nil
}

// tableOnly are the ranges of a shard that must come from ClickHouse although
// SHARDS has frames below and above: the inserts of which an erasure took frames
// out of SHARDS.
func (j *Job) tableOnly(ctx context.Context, s *shard) ([]ledger.Span, error) {
	var out []ledger.Span
	for _, p := range s.purged {
		if len(out) > 0 && out[len(out)-1].To >= p.To {
			continue // of the insert before
		}
		at, err := j.endsAround(ctx, s, gap{p.From, p.To})
		if err != nil {
			return nil, err
		}
		out = append(out, ledger.Span{From: at.below + 1, To: max(at.at, p.To)})
	}
	return out, nil
}

// readFrames gives the frames from a sequence on, until the position upTo was given
// or a frame is missing.
func (j *Job) readFrames(ctx context.Context, s *shard, seq uint64, after *mark, upTo uint64, batch int, give func(*unit) error) error {
	next := max(after.Number+1, s.from)
	for whole := true; whole && next <= upTo; {
		var units []*unit
		size := 0
		err := streams.Gather(ctx, j.r.js, schemas.StreamShards, s.subject, seq, func() int { return batch - len(units) },
			func(msg *streams.Message) (bool, error) {
				p, err := schemas.ParsePlaced(msg.Header)
				if err != nil {
					return true, nil // no frame, so no event; verify names it
				}
				if whole = p.Pos == next && p.Cleared == ""; !whole {
					return false, nil
				}
				units = append(units, &unit{shard: s, end: mark{Number: p.Pos}, frame: p, data: msg.Data, expected: p.Rows})
				seq, next, size = msg.Sequence+1, next+1, size+len(msg.Data)
				return len(units) < batch && size < batchBytes && next <= upTo, nil
			})
		if err != nil {
			return err
		}
		if len(units) == 0 {
			if whole {
				return fmt.Errorf("%w: %d of %s is not in %s; run `almanac verify %s`", ErrLost, next, s.Name(), schemas.StreamShards, s.Topic)
			}
			return nil // purged, or missing: the caller looks again
		}
		for _, u := range units {
			if err := give(u); err != nil {
				return err
			}
		}
	}
	return nil
}
