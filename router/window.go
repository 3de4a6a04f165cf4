package router

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/schemas"
)

// window is what the lane remembers of one producer.
type window = schemas.ProducerWindow

// verdict is what the window says of a sequence.
type verdict int

const (
	fresh    verdict = iota // never came
	repeated                // came before
	stale                   // too far behind to tell
)

// judgeSeq says what seq is, without taking it.
func judgeSeq(w *window, seq uint64) verdict {
	switch {
	case seq > w.Highest:
		return fresh
	case seq == w.Highest:
		return repeated
	case w.Highest-seq > schemas.MaxInFlight:
		return stale
	case w.Seen&(1<<(w.Highest-seq-1)) != 0:
		return repeated
	}
	return fresh
}

// takeSeq marks seq, which judgeSeq called fresh.
func takeSeq(w *window, seq, source uint64) {
	w.Last = source
	if seq < w.Highest {
		w.Seen |= 1 << (w.Highest - seq - 1)
		return
	}
	shift := seq - w.Highest
	if w.Highest == 0 { // a new window: nothing came before
		w.Highest = seq
		return
	}
	// Shifts of 64 and more yield zero in Go.
	w.Seen = w.Seen<<shift | 1<<(shift-1)
	w.Highest = seq
}

// MaxWindows bounds the producers a lane's checkpoint remembers: at about 60
// bytes each, a checkpoint of 60 KiB at most. Beyond it the producer that was
// silent longest is forgotten; a frame it sends again after that would be routed
// again, so the bound is far above the producers a lane sees in a dedup window.
const MaxWindows = 1024

// windows are the producers of one lane.
type windows []window

func (ws windows) find(producer string) *window {
	for i := range ws {
		if ws[i].Producer == producer {
			return &ws[i]
		}
	}
	return nil
}

// judge says what a frame is.
func (ws windows) judge(f schemas.Frame) verdict {
	if f.Producer == "" {
		return fresh
	}
	if w := ws.find(f.Producer); w != nil {
		return judgeSeq(w, f.Seq)
	}
	return fresh
}

// take marks a frame and returns the windows, never more than MaxWindows.
func (ws windows) take(f schemas.Frame, source uint64) windows {
	if f.Producer == "" {
		return ws
	}
	w := ws.find(f.Producer)
	if w == nil {
		if len(ws) >= MaxWindows {
			i := slices.IndexFunc(ws, func(w window) bool {
				return w.Last == slices.MinFunc(ws, func(a, b window) int { return cmp.Compare(a.Last, b.Last) }).Last
			})
			ws = slices.Delete(ws, i, i+1)
		}
		ws = append(ws, window{Producer: f.Producer})
		w = &ws[len(ws)-1]
	}
	takeSeq(w, f.Seq, source)
	return ws
}

// err is the refusal of a stale frame.
func (ws windows) err(f schemas.Frame) error {
	return fmt.Errorf("%w: producer %s sent %d, its highest is %d; only the %d before it can still be told apart",
		ErrStaleSeq, f.Producer, f.Seq, ws.find(f.Producer).Highest, schemas.MaxInFlight)
}
