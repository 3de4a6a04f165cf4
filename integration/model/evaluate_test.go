package model

import (
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// evaluate says why a frame is not routed: it came before, or it is refused.
func (l *lane) evaluate(f *frame) string {
	w := l.w
	verdict := checkpoint.Windows(l.cp.Windows).Check(f.Frame)
	switch {
	case w.broken(NoWindow):
		verdict = checkpoint.Fresh
	case w.broken(NarrowWindow):
		verdict = narrowly(l.cp.Windows, f.Frame, verdict)
	}
	switch {
	case verdict == checkpoint.Repeated:
		w.saw(RefusedByWindow)
		return "repeated"
	case verdict == checkpoint.Stale:
		w.saw(KeptAsStale)
		return staleSeq
	case f.poison:
		w.saw(Refused)
		return "poison"
	}
	return ""
}

// staleSeq is the reason of a dead letter that may be routed all the same.
const staleSeq = "stale-seq"

// narrowly checks by a window of eight, as if nothing before it ever came.
func narrowly(ws []checkpoint.ProducerWindow, f schemas.Frame, v checkpoint.Repeat) checkpoint.Repeat {
	for _, w := range ws {
		if w.Producer == f.Producer && f.Seq+8 < w.Highest {
			return checkpoint.Fresh
		}
	}
	return v
}

// take remembers a frame that is routed or refused for good.
func (l *lane) take(f *frame, source uint64) {
	ws := checkpoint.Windows(l.cp.Windows)
	if ws.Check(f.Frame) != checkpoint.Fresh || f.poison && l.w.broken(ForgetsRefused) {
		return
	}
	l.cp.Windows = ws.Take(f.Frame, source)
}
