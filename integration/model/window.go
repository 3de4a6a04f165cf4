package model

import "github.com/almanac-events/almanac/schemas"

// Window is the unanswered frames of one producer and lane, by the producer's
// rule: their seqs lie within schemas.MaxInFlight of the highest given, so a
// stuck oldest frame holds the lane.
type Window struct {
	next    uint64
	waiting []*flight // by seq
}

// frame is what a producer sends: its headers, and an identity in place of its
// bytes. All of its events share its fate, so the model counts frames.
type frame struct {
	schemas.Frame
	id     int
	month  schemas.Month
	lane   int
	poison bool // the router must refuse it
}

// flight is a frame that was sent, and when it is sent again.
type flight struct {
	frame *frame
	seq   uint64
	due   int64
}

// NewWindow is empty; seqs count from 1.
func NewWindow() Window { return Window{next: 1} }

// Space says whether one more frame may be sent.
func (w *Window) Space() bool { return w.spread() < schemas.MaxInFlight }

// spread is how many seqs lie from the oldest unanswered to the next.
func (w *Window) spread() uint64 {
	if len(w.waiting) == 0 {
		return 0
	}
	return w.next - w.waiting[0].seq
}

// Add gives the next seq. There must be room.
func (w *Window) Add() uint64 { return w.add(nil).seq }

func (w *Window) add(f *frame) *flight {
	fl := &flight{frame: f, seq: w.next}
	w.next++
	w.waiting = append(w.waiting, fl)
	return fl
}

// Take settles a seq and says whether it was waiting.
func (w *Window) Take(seq uint64) bool { return w.take(seq) != nil }

func (w *Window) take(seq uint64) *flight {
	for i, fl := range w.waiting {
		if fl.seq == seq {
			w.waiting = append(w.waiting[:i], w.waiting[i+1:]...)
			return fl
		}
	}
	return nil
}
