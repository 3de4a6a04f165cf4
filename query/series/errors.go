package series

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// ErrTooMuch: the read would touch more series or rows, or give more points, than a read may.
var ErrTooMuch = errors.New("the read is too large")

func bad(format string, a ...any) error {
	return fmt.Errorf("%w: %s", schemas.ErrRequest, fmt.Sprintf(format, a...))
}

func tooMuch(format string, a ...any) error {
	return fmt.Errorf("%w: %w: %s", schemas.ErrRequest, ErrTooMuch, fmt.Sprintf(format, a...))
}
