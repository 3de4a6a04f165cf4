package checkpoint

import (
	"cmp"
	"github.com/almanac-events/almanac/schemas"
	"math/bits"
	"slices"
)

// Repeat is what the windows say of a frame.
type Repeat int

// What a window says of a sequence.
const (
	Fresh    Repeat = iota // never came
	Repeated               // came before
	Stale                  // too far behind to tell
)

// checkSeq says what seq is, without taking it.
func checkSeq(w *ProducerWindow, seq uint64) Repeat {
	switch {
	case seq > w.Highest:
		return Fresh
	case seq == w.Highest:
		return Repeated
	case w.Highest-seq > schemas.MaxInFlight:
		return Stale
	case w.Seen&(1<<(w.Highest-seq-1)) != 0:
		return Repeated
	}
	return Fresh
}

// takeSeq marks seq, which checkSeq called Fresh.
func takeSeq(w *ProducerWindow, seq, source uint64) {
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

// Windows are the producers of one lane, as its checkpoint remembers them.
type Windows []ProducerWindow

func (ws Windows) find(producer string) *ProducerWindow {
	for i := range ws {
		if ws[i].Producer == producer {
			return &ws[i]
		}
	}
	return nil
}

// Check says what a frame is. A frame without a producer is always Fresh.
func (ws Windows) Check(f schemas.Frame) Repeat {
	if f.Producer == "" {
		return Fresh
	}
	if w := ws.find(f.Producer); w != nil {
		return checkSeq(w, f.Seq)
	}
	return Fresh
}

// Take marks a frame, which Check called Fresh, and returns the windows, never
// more than MaxWindows. source is the frame's sequence in EVENTS.
func (ws Windows) Take(f schemas.Frame, source uint64) Windows {
	if f.Producer == "" {
		return ws
	}
	w := ws.find(f.Producer)
	if w == nil {
		if len(ws) >= MaxWindows {
			i := slices.IndexFunc(ws, func(w ProducerWindow) bool {
				return w.Last == slices.MinFunc(ws, func(a, b ProducerWindow) int { return cmp.Compare(a.Last, b.Last) }).Last
			})
			ws = slices.Delete(ws, i, i+1)
		}
		ws = append(ws, ProducerWindow{Producer: f.Producer})
		w = &ws[len(ws)-1]
	}
	takeSeq(w, f.Seq, source)
	return ws
}

// TakeRefused marks a frame that became a dead letter, where it is Fresh. Were it forgotten,
// the frame that its producer sends again would be a second dead letter, or be stored once
// the topic takes it, and again when the letter is retried. One whose bytes are damaged is
// not for here: the same frame may still come whole.
func (ws Windows) TakeRefused(f schemas.Frame, source uint64) Windows {
	if ws.Check(f) != Fresh {
		return ws
	}
	return ws.Take(f, source)
}

// Forget unmarks a frame that Check calls Repeated.
func (ws Windows) Forget(f schemas.Frame) Windows {
	w := ws.find(f.Producer)
	if w == nil {
		return ws
	}
	if f.Seq < w.Highest {
		w.Seen &^= 1 << (w.Highest - f.Seq - 1)
		return ws
	}
	if w.Seen == 0 { // nothing else within reach
		return slices.DeleteFunc(ws, func(o ProducerWindow) bool { return o.Producer == f.Producer })
	}
	n := bits.TrailingZeros64(w.Seen) + 1 // to the next that came
	w.Highest, w.Seen = w.Highest-uint64(n), w.Seen>>n
	return ws
}

// Highest is the highest sequence of a producer, 0 when it is not remembered.
func (ws Windows) Highest(producer string) uint64 {
	if w := ws.find(producer); w != nil {
		return w.Highest
	}
	return 0
}
