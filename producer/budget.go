package producer

import "time"

// budget is how many bytes may be in flight, as weigh counts them. A stream that syncs every frame gets
// no faster by having more of them wait: they only make its queue longer, which
// all producers share, and beyond whose bound it refuses. So the budget follows
// the time answers take, as LEDBAT does (RFC 6817): while they come within
// budgetDelay of the quickest it grows, by a step for each budget that was
// answered; when they take longer, when the stream refuses, and when it says
// nothing, it is cut. It is a decision without a clock.
type budget struct {
	bytes float64 // now
	most  float64 // ever
	// quickest answers, of this period and of the one before: what the way takes
	// with an empty queue.
	quickest [2]time.Duration
	period   time.Time
	cutAt    time.Time // zero: never yet
}

const (
	// budgetStart and budgetStep: a quarter of what is allowed, and a usual frame.
	budgetStart = 2 << 20
	budgetStep  = 128 << 10
	// budgetFloor is where slow answers alone do not cut any more: two frames of the
	// largest, so that a way that grew long does not end in one at a time.
	budgetFloor = 1 << 20
	// budgetDelay is how long frames may queue: enough to keep everything busy that
	// takes turns with the producer. With 50 ms, and half of the floor, a machine of
	// two cores idled for a third of the time (270 k events/s instead of 390 k).
	budgetDelay = 150 * time.Millisecond
	// budgetCut and budgetHalf are what a cut leaves, for slow answers and for none.
	budgetCut, budgetHalf = 0.7, 0.5
	// minWeight is what a frame counts at least. A stream that syncs each frame is busy
	// with one of 3 KiB for about as long as it takes 32 KiB in at 72 to 116 MB/s. Counted
	// by bytes alone, the frames of 64 producers at 300 events a second each came to
	// 20,000 in its queue, 20 seconds' work: within their floors, and behind them waited
	// what the stream had to say to everybody else.
	minWeight = 32 << 10
	// budgetPeriod is how long the quickest answer is remembered, once or twice.
	budgetPeriod = 30 * time.Second
)

func newBudget(most int) budget {
	return budget{bytes: min(budgetStart, float64(most)), most: float64(most)}
}

// weigh is what a frame with so many bytes of payload takes of a budget.
func weigh(payload int) int { return max(payload, minWeight) }

// stored hears of the answer to n bytes sent at a time, while inFlight bytes were.
func (b *budget) stored(n, inFlight int, sent, now time.Time) {
	took := now.Sub(sent)
	if b.period.IsZero() || now.Sub(b.period) >= budgetPeriod {
		b.quickest, b.period = [2]time.Duration{took, b.quickest[0]}, now
		if b.quickest[1] == 0 {
			b.quickest[1] = took
		}
	}
	b.quickest[0] = min(b.quickest[0], took)
	switch {
	case took-min(b.quickest[0], b.quickest[1]) > budgetDelay:
		if b.bytes > budgetFloor {
			b.cut(budgetCut, sent, now)
			b.bytes = max(b.bytes, budgetFloor)
		}
	case float64(inFlight) < b.bytes/2: // it was not what held frames back
	case b.cutAt.IsZero(): // twice as much with every round trip, to begin with
		b.bytes = min(b.bytes+float64(n), b.most)
	default:
		b.bytes = min(b.bytes+budgetStep*float64(n)/b.bytes, b.most)
	}
}

// congested hears that what was sent at a time found a full queue, or no answer.
func (b *budget) congested(sent, now time.Time) { b.cut(budgetHalf, sent, now) }

// cut leaves a share of the budget, once for all that was sent before the last.
func (b *budget) cut(left float64, sent, now time.Time) {
	if sent.Before(b.cutAt) {
		return
	}
	b.bytes, b.cutAt = max(1, b.bytes*left), now
}

// space is how many bytes a new frame may have beside those in flight: any, when
// there are none.
func (b *budget) space(inFlight int) int {
	if inFlight == 0 {
		return maxBufferBytes
	}
	return int(b.bytes) - inFlight
}
