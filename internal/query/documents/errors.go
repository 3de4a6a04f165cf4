package documents

import "errors"

var (
	// ErrNoRow: a stub names a row that is not there.
	ErrNoRow = errors.New("the row of a document is missing")
	// ErrOnItsWay: ClickHouse does not have all yet that was written before.
	ErrOnItsWay = errors.New("versions may be on their way to ClickHouse; try again")
)
