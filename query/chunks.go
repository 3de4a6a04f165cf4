package query

import (
	"context"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/query/recent"
)

// chunks gives f the frames in turn, opened in portions: small ones at first, for a
// page that is soon full, then as much as one statement takes. It ends when f has
// enough, or at maxFreshBytes, which the walk's notes then tell.
func (w *walk) chunks(ctx context.Context, frames []recent.Meta, enough func(next *recent.Meta) bool, f func([]recent.Frame) error) (gone bool, err error) {
	for portion := firstPortionBytes; len(frames) > 0 && !enough(&frames[0]); portion = min(4*portion, maxStatementBytes) {
		n, raw := 0, 0
		for ; n < len(frames) && (n == 0 || raw < portion); n++ {
			raw += frames[n].RawBytes()
			w.freshBytes += frames[n].Bytes()
		}
		if w.freshBytes > maxFreshBytes {
			w.cut = true
			return gone, nil
		}
		missed, err := w.chunk(ctx, frames[:n], int64(raw), f)
		if err != nil {
			return gone, err
		}
		gone = gone || missed
		frames = frames[n:]
	}
	return gone, nil
}

// rawTimes is how many bytes are held for each of a frame while it is evaluated: as it came, decompressed, and
// as a part of a statement.
const rawTimes = 3

// chunk fetches frames for f.
func (w *walk) chunk(ctx context.Context, frames []recent.Meta, raw int64, f func([]recent.Frame) error) (gone bool, err error) {
	held := budget.Of(ctx)
	if err := held.Take(rawTimes * raw); err != nil {
		return false, err
	}
	defer held.Free(rawTimes * raw)
	some, gone, err := w.p.snapshot.Fetch(ctx, frames)
	if err != nil {
		return gone, err
	}
	return gone, f(some)
}
