package router

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// Windows are the producers of one lane, as its checkpoint remembers them.
type Windows = schemas.Windows

// Verdict is what the windows say of a frame.
type Verdict = schemas.Verdict

// The verdicts.
const (
	Fresh    = schemas.Fresh
	Repeated = schemas.Repeated
	Stale    = schemas.Stale
)

// MaxWindows bounds the producers a lane's checkpoint remembers.
const MaxWindows = schemas.MaxWindows

// staleFrame is the refusal of a stale frame.
func staleFrame(ws Windows, f schemas.Frame) error {
	return fmt.Errorf("%w: producer %s sent %d, its highest is %d; only the %d before it can still be told apart",
		ErrStaleSeq, f.Producer, f.Seq, ws.Highest(f.Producer), schemas.MaxInFlight)
}
