package prometheus

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// ErrTooMany: the points of a query have no room beside those of others.
var ErrTooMany = errors.New("too many points")

func tooMany(limit int64) error {
	return fmt.Errorf("%w: %w: the queries under way may hold %d points together; select fewer series, take a shorter range, or ask again", schemas.ErrRequest, ErrTooMany, limit)
}
