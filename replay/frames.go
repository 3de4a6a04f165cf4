package replay

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Frames are asked for in batches and given on when a batch is whole, so that a
// slow sink never holds up an answer of the server. A batch has at most batchFrames
// frames and ends with the one that makes it batchBytes; by time, where many shards
// are read at once, it is one frame.
const (
	batchFrames = 64
	batchBytes  = 4 << 20
)

// read gives the units of a shard after a mark, in order, from whichever source has them.
func (j *Job) read(ctx context.Context, s *shard, after position, batch int, give func(*unit) error) error {
	next := max(after.Number+1, s.from)
	below := brought{known: next == 1} // by all positions below next, where it is known
	for next <= s.to {
		if next > s.held {
			return j.readStored(ctx, s, next, s.to, brought{}, give)
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
		above := brought{first.ShardRows - min(first.ShardRows, uint64(first.Rows)), true}
		if first.Cleared != "" { // only a mark is left of the shard's last frame
			first.Pos++
			above.rows = first.ShardRows
		}
		if first.Pos > next {
			upTo := min(first.Pos-1, s.to)
			b := brought{above.rows - min(above.rows, below.rows), below.known && upTo == first.Pos-1}
			if err := j.readStored(ctx, s, next, upTo, b, give); err != nil {
				return err
			}
			next, below = upTo+1, above
		} else if next, below, err = j.readFrames(ctx, s, seq, next, batch, give); err != nil {
			return err
		}
	}
	return nil
}

// readFrames gives the frames from a sequence on, of positions from next on, until the shard's last was
// given or a frame is missing. It returns the position that comes next, and what was brought below it.
func (j *Job) readFrames(ctx context.Context, s *shard, seq, next uint64, batch int, give func(*unit) error) (uint64, brought, error) {
	var below brought
	end := min(s.to, s.held)
	for whole := true; whole && next <= end; {
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
				units = append(units, &unit{shard: s, end: position{Number: p.Pos}, frame: p, data: msg.Data, expected: p.Rows})
				below = brought{p.ShardRows, true}
				seq, next, size = msg.Sequence+1, next+1, size+len(msg.Data)
				return len(units) < batch && size < batchBytes && next <= end, nil
			})
		if err != nil {
			return 0, below, err
		}
		if len(units) == 0 && whole {
			return 0, below, fmt.Errorf("%w: %d of %s is not in %s; run `almanac verify %s`", ErrLost, next, s.Name(), schemas.StreamShards, s.Topic)
		}
		for _, u := range units { // none: purged, or missing, and the caller looks again
			if err := give(u); err != nil {
				return 0, below, err
			}
		}
	}
	return next, below, nil
}
