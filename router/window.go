package router

import (
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/frame"
)

// staleFrame is the refusal of a stale frame.
func staleFrame(ws checkpoint.Windows, f schemas.Frame) error {
	return fmt.Errorf("%w: producer %s sent %d, its highest is %d; only the %d before it can still be told apart",
		ErrStaleSeq, f.Producer, f.Seq, ws.Highest(f.Producer), schemas.MaxInFlight)
}

// refusedFrame is the frame of a message that is refused with why, nil where its bytes are damaged
// or its headers lie: its number is then no more to be believed than the rest.
func refusedFrame(m *message, why error) *schemas.Frame {
	f, err := schemas.ParseFrame(m.header)
	if err != nil || !frame.Intact(m.data) || errors.Is(why, schemas.ErrFrameLies) {
		return nil
	}
	return &f
}
