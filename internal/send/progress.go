package send

import "time"

// drawnEvery is how often a send shows how far it is.
const drawnEvery = 200 * time.Millisecond

// Progress shows how far a send is. It is called from one goroutine.
type Progress interface {
	Draw(now time.Time)
	// End leaves what was drawn, so that what follows begins on a line of its own.
	End()
}

// shown is p, or where there is none one that shows nothing.
func shown(p Progress) Progress {
	if p == nil {
		return unseen{}
	}
	return p
}

type unseen struct{}

func (unseen) Draw(time.Time) {}
func (unseen) End()           {}
