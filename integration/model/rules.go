package model

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

var errGap = errors.New("gap")

// Full says why a shard that holds so many frames and rows, the latest of the time top, must be
// left before a frame up to hi goes in, or "": the router's rule for rows and
// span. An empty shard is never full.
func Full(r schemas.Rotation, frames, rows uint64, top, hi int64) string {
	switch {
	case frames == 0:
		return ""
	case r.Rows > 0 && rows >= r.Rows:
		return "rows"
	case r.Span > 0 && hi/int64(r.Span) > top/int64(r.Span):
		return "span"
	}
	return ""
}

// Follows says why a frame may not be the next of a batch that has n frames after
// the head, the last with the digest prev (empty: unknown).
func Follows(head uint64, n int, prev string, p schemas.Placed) error {
	switch want := head + uint64(n) + 1; {
	case p.Pos < want:
		return fmt.Errorf("%w: position %d stands twice", errGap, p.Pos)
	case p.Pos > want:
		return fmt.Errorf("%w: positions %d to %d are missing", errGap, want, p.Pos-1)
	case prev != "" && p.Prev != prev:
		return fmt.Errorf("%w: position %d names %s as its predecessor, not %s", errGap, p.Pos, p.Prev, prev)
	}
	return nil
}
