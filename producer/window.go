package producer

import (
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// window is the frames of one lane that were sent and not answered. Its seqs
// all lie within schemas.MaxInFlight of the highest given: the router remembers
// no more, so a frame that came later than that would be taken for a repetition
// and lost. A stuck oldest frame therefore holds the lane.
type window struct {
	limit  int // frames at once, at most schemas.MaxInFlight
	count  int
	oldest uint64 // lowest unanswered seq; next when there is none
	next   uint64 // the seq the next frame gets; they count from 1
	slots  [schemas.MaxInFlight]*laneFrame
}

func newWindow(limit int) window { return window{limit: limit, oldest: 1, next: 1} }

// space says whether one more frame may be sent: below floor is nothing that may
// still be sent again, beside what is in the window.
func (w *window) space(floor uint64) bool { return w.fits(w.next, floor) }

// fits is room for the frame of a seq, next or above it.
func (w *window) fits(seq, floor uint64) bool {
	if w.count > 0 {
		floor = min(floor, w.oldest)
	}
	return w.count < w.limit && (seq <= floor || seq-floor < schemas.MaxInFlight)
}

// skipTo makes seq the next one: those between were never given to a frame that
// is left.
func (w *window) skipTo(seq uint64) {
	w.next = max(w.next, seq)
	if w.count == 0 {
		w.oldest = w.next
	}
}

// add gives f its seq. There must be room.
func (w *window) add(f *laneFrame) {
	f.seq = w.next
	w.slots[w.next%schemas.MaxInFlight] = f
	w.next++
	w.count++
}

// take removes the frame of a seq, or returns nil when it was answered before.
func (w *window) take(seq uint64) *laneFrame {
	if seq < w.oldest || seq >= w.next {
		return nil
	}
	slot := &w.slots[seq%schemas.MaxInFlight]
	f := *slot
	if f == nil {
		return nil
	}
	*slot = nil
	w.count--
	for w.oldest < w.next && w.slots[w.oldest%schemas.MaxInFlight] == nil {
		w.oldest++
	}
	return f
}

// all yields the unanswered frames, oldest first.
func (w *window) all(yield func(*laneFrame) bool) {
	for seq := w.oldest; seq < w.next; seq++ {
		if f := w.slots[seq%schemas.MaxInFlight]; f != nil && !yield(f) {
			return
		}
	}
}

// due is the oldest frame to send again at now, or nil.
func (w *window) due(now time.Time) *laneFrame {
	for f := range w.all {
		if !f.due.After(now) {
			return f
		}
	}
	return nil
}

// held says whether a frame is known to be away and waits to be sent again:
// then new ones would only meet the same trouble.
func (w *window) held() bool {
	for f := range w.all {
		if f.refused {
			return true
		}
	}
	return false
}
