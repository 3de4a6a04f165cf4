package cleaner

import "errors"

var (
	// ErrNoRow: too many keys of a lane have records without a row in ClickHouse, although all
	// of the lane is stored. Nothing more leaves it.
	ErrNoRow = errors.New("records are not in ClickHouse, where they were stored")
	// ErrWhole: a shard's fields cannot be cleared yet, since its front has a record of it whole.
	ErrWhole = errors.New("fields are cleared once the bodies have left the stream")
)
