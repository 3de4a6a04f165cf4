package tables

import (
	"errors"
	"fmt"
)

// MaxAttempts bounds the inserts after one head. Each consumed token needs a crash of ClickHouse between its
// deduplication log and the part, so ten are a fault of another kind.
const MaxAttempts = 10

// Follow inserts until the head moves, and returns where it is then. What insert returns proves nothing: only what
// read returns does. An insert without an error that left the head where it was met a consumed token; the next
// attempt, counted from 0, has to use another. ErrConsumed: that happened MaxAttempts times.
func Follow(head uint64, insert func(attempt int) error, read func() (uint64, error)) (uint64, error) {
	for attempt := range MaxAttempts {
		insertErr := insert(attempt)
		now, err := read()
		switch {
		case err != nil:
			return 0, errors.Join(insertErr, err)
		case now > head:
			return now, nil
		case insertErr != nil:
			return 0, insertErr
		}
	}
	return 0, fmt.Errorf("%w: %d attempts after position %d were answered OK and stored nothing", ErrConsumed, MaxAttempts, head)
}
