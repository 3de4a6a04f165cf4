package producer

import (
	"math/rand/v2"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Bounds of the wait before a frame is sent again. 100 ms is a JetStream leader
// election seen from far, 5 s a restart; longer waits only lengthen the outage.
const (
	minRetryWait = 100 * time.Millisecond
	maxRetryWait = 5 * time.Second
	// maxAckFactor bounds how far the patience for an answer grows: it doubles, since a slow
	// server must not be buried under repetitions, three times: what is longer than eight
	// times an answer's usual wait is lost, and only an outage of the producer's own making.
	maxAckFactor = 8
)

// retryWait is how long a frame that is known not to have been stored waits
// before its next attempt: doubling from 100 ms to 5 s, with half of it random
// (r in [0,1)), so that the frames of many producers do not come together.
func retryWait(attempts int, r float64) time.Duration {
	return backoff.After(attempts, minRetryWait, maxRetryWait, r)
}

// ackWait is how long a frame waits for its answer, doubling from base to eight
// times base, plus up to a tenth. Before it doubles it stays the same for a time:
// servers that elect drop what comes meanwhile, and are not slow.
func ackWait(base, same time.Duration, attempts int, r float64) time.Duration {
	doubled := max(attempts-1-int(same/base), 0)
	d := base * time.Duration(min(1<<min(doubled, 16), maxAckFactor))
	return d + time.Duration(r*float64(d/10))
}

func random() float64 { return rand.Float64() }
