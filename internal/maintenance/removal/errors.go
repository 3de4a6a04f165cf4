package removal

import "errors"

var (
	// ErrSlow: routers did not let go of the topic in time. It goes on with the next Run.
	ErrSlow = errors.New("routers still have the topic")
	// errEnded: another process that removes the topic was faster, and has ended the removal.
	errEnded = errors.New("another process has ended this removal")
	// ErrBack: something of the topic came again and again. It goes on with the next Run.
	ErrBack = errors.New("something of the topic comes again")
)
