package replay

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

var (
	// ErrLost: positions are neither in SHARDS nor in ClickHouse.
	ErrLost = errors.New("positions are missing")
	// ErrChanged: an erasure took rows away while they were read. The cursor stands
	// before them.
	ErrChanged = errors.New("the rows changed")
	// ErrTooWide: too many shards overlap one time to be merged.
	ErrTooWide = errors.New("too many shards overlap to be merged by time")
	// ErrTarget: that is not a place to replay into.
	ErrTarget = errors.New("bad target")
	// ErrDone: the job has replayed everything it was to.
	ErrDone = errors.New("the job is done")
	// ErrNoJob: no job has that id.
	ErrNoJob = errors.New("no such job")
)

// refuse makes a request's fault of a text.
func refuse(kind error, format string, a ...any) error {
	err := fmt.Errorf(format, a...)
	if kind != nil {
		err = fmt.Errorf("%w: %w", kind, err)
	}
	return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
}
