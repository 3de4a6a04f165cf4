package otlp

import "errors"

// Why a request of metrics cannot be read as a whole.
var (
	// ErrMetrics: the body is not an export request of metrics.
	ErrMetrics = errors.New("not an OTLP metrics request")
	// ErrManyPoints: it has more than MaxPoints data points, or their events are too large.
	ErrManyPoints = errors.New("too many data points")
)

// ErrID: the trace or span id of a record is none.
var ErrID = errors.New("bad id")

// ErrPoint: a data point cannot become a point of a series.
var ErrPoint = errors.New("bad data point")
