package jobs

import "errors"

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
