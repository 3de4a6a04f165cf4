package model

import (
	"github.com/almanac-events/almanac/schemas"
)

// judge says why a frame is not routed: it came before, or it is refused.
func (l *lane) judge(f *frame) string {
	w := l.w
	verdict := schemas.Windows(l.cp.Windows).Judge(f.Frame)
	switch {
	case w.broken(NoWindow):
		verdict = schemas.Fresh
	case w.broken(NarrowWindow):
		verdict = narrowly(l.cp.Windows, f.Frame, verdict)
	}
	switch {
	case verdict == schemas.Repeated:
		w.saw(RefusedByWindow)
		return "repeated"
	case verdict == schemas.Stale:
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

// narrowly judges by a window of eight, as if nothing before it ever came.
func narrowly(ws []schemas.ProducerWindow, f schemas.Frame, v schemas.Verdict) schemas.Verdict {
	for _, w := range ws {
		if w.Producer == f.Producer && f.Seq+8 < w.Highest {
			return schemas.Fresh
		}
	}
	return v
}

// take remembers a frame that is routed or refused for good.
func (l *lane) take(f *frame, source uint64) {
	ws := schemas.Windows(l.cp.Windows)
	if ws.Judge(f.Frame) != schemas.Fresh || f.poison && l.w.broken(ForgetsRefused) {
		return
	}
	l.cp.Windows = ws.Take(f.Frame, source)
}
