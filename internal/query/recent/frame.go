package recent

import (
	"fmt"
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
	lane := schemas.NoLane
	if !f.routed() {
		if _, lane, err = schemas.ParseEventsSubject(f.Subject, t); err != nil {
			return err
		}
	}
	if err := r.Check(f.Frame, month, lane, f.StoredNs); err != nil || f.routed() {
		return err
	}
	return f.rule(r, t)
}

// rule applies the privacy rules to the open frame that the router will apply, because its producer did not know them
// yet. What they hash is dropped until then: readers have no key.
func (f *Frame) rule(r *frame.Reader, t *schemas.Topic) error {
	made, err := r.Ruled(f.Frame, nil)
	if err != nil || made == nil {
		return err
	}
	if len(made) != 1 {
		return fmt.Errorf("%w: %d frames under its topic's privacy rules", schemas.ErrFrameTooLarge, len(made))
	}
	f.Frame, f.Payload = made[0].Frame, made[0].Payload
	return r.Open(f.Payload, t, f.Schema)
}

// SchemaUnder is the schema version that the frame has once it is opened as one of the topic.
func (f *Frame) SchemaUnder(t *schemas.Topic) int {
	if !f.routed() && t.RulesAfter(f.Schema) != nil {
		return t.Version
	}
	return f.Schema
}

// routed reports that the frame is of SHARDS: rules that came before it was routed were applied.
func (f *Frame) routed() bool {
	_, _, _, err := schemas.EventsTokens(f.Subject)
	return err != nil
}
