package rebuild

import "errors"

var (
	// ErrDiffers: the fresh table has not what the old one has. Nothing was swapped.
	ErrDiffers = errors.New("the fresh table differs")
	// ErrBusy: an erasure is at work in the topic, or retention clears fields of a shard.
	ErrBusy = errors.New("events are being erased or cleared")
	// ErrColumns: the table has columns that the topic does not declare, and which
	// the fresh one would lack.
	ErrColumns = errors.New("undeclared columns")
	// ErrChanged: the topic was declared again meanwhile.
	ErrChanged = errors.New("the topic changed")
)
