package usage

import "errors"

var (
	// ErrCut: an edge of the range lies within a day whose rows retention dropped.
	ErrCut = errors.New("the range cuts a day whose diffs were dropped")
	// ErrDiffers: the rows, grouped by cause, say other than marks and sums do.
	ErrDiffers = errors.New("usage differs from the rows")
	// ErrUnsummed: retention dropped a shard that was not summed.
	ErrUnsummed = errors.New("a dropped shard has no sums")
)
