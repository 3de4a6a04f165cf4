package query

import (
	"context"

	"github.com/almanac-events/almanac/query/recent"
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
		some, missed, err := w.p.snapshot.Fetch(ctx, frames[:n])
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
