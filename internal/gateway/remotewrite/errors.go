package remotewrite

import "errors"

var (
	// ErrWrite: a body is not a remote write request.
	ErrWrite = errors.New("not a remote write request")
	// ErrTooLarge: a request is larger than the limit once unpacked.
	ErrTooLarge = errors.New("remote write request too large")
	// ErrSeries: a series cannot become events.
	ErrSeries = errors.New("bad series")
)
