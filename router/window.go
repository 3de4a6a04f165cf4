package router

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// staleFrame is the refusal of a stale frame.
func staleFrame(ws schemas.Windows, f schemas.Frame) error {
	return fmt.Errorf("%w: producer %s sent %d, its highest is %d; only the %d before it can still be told apart",
		ErrStaleSeq, f.Producer, f.Seq, ws.Highest(f.Producer), schemas.MaxInFlight)
}
