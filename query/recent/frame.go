package recent

import (
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Frame is a whole frame that ClickHouse may not have yet.
type Frame struct {
	schemas.Frame
	Payload  []byte
	Subject  string
	StoredNs int64          // when its stream stored it
	Source   schemas.Source // the message of EVENTS it came with
}

// open reads the frame and judges it as the router does, but for repeats.
func (f *Frame) open(r *frame.Reader, t *schemas.Topic) error {
	if err := r.Open(f.Payload, t, f.Schema); err != nil {
		return err
	}
	month, err := schemas.MonthOfSubject(f.Subject)
	if err != nil {
		return err
	}
	if err := t.CheckKeep(month, time.Unix(0, f.StoredNs)); err != nil {
		return err
	}
	return r.Check(f.Frame, month, f.StoredNs)
}
