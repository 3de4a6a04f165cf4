package model

import (
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// months are where events fall: two, so that a lane has two active shards.
var months = [...]schemas.Month{202611, 202612}

// newFrame makes up a frame of a few events somewhere in a month.
func (w *World) newFrame(lane int) *frame {
	m := months[w.rng.IntN(len(months))]
	at := m.Start() + int64(w.rng.IntN(24*60))*int64(time.Minute)
	f := &frame{
		Frame:  schemas.Frame{Rows: 1 + w.rng.IntN(4), MinTs: at, MaxTs: at + int64(w.rng.IntN(120))*int64(time.Second)},
		id:     len(w.oracle.frames),
		month:  m,
		lane:   lane,
		poison: w.rng.IntN(16) == 0,
	}
	w.oracle.made(f)
	return f
}
