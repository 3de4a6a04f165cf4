package billing

import "errors"

var (
	// ErrOpen: the month was not closed, or not to its end.
	ErrOpen = errors.New("the month is not closed")
	// ErrLost: the month was closed, and its bills are not in the topic any more.
	ErrLost = errors.New("bills are gone")
	// ErrElsewhere: the month is closed into another topic, or otherwise grouped.
	ErrElsewhere = errors.New("the month is closed otherwise")
)
