package jobs

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/registry"
)

var (
	// ErrNoJob: no job has that id.
	ErrNoJob = errors.New("no such job")
	// ErrFull: as many jobs wait as may.
	ErrFull = errors.New("too many jobs wait")
	// ErrEnded: the job has ended, so nothing can be changed.
	ErrEnded = errors.New("the job has ended")
	// errCancelled ends the context of a job that was cancelled.
	errCancelled = errors.New("the job was cancelled")
	// errTaken ends the context of a job that another gateway took up.
	errTaken = errors.New("another gateway runs the job")
)

// Unknown is the error of an id that no job has.
func Unknown(id string) error {
	return fmt.Errorf("%w: %s; the last %d are remembered", ErrNoJob, id, registry.MaxJobs)
}
