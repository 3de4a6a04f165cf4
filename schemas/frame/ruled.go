package frame

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// Made is a frame that was made of another.
type Made struct {
	schemas.Frame
	Payload []byte
	IDSum   uint64
}

// Ruled returns the open frame f again, with the privacy rules applied that its topic has and its producer did not
// know, under the topic's newest schema version; none when there are no such rules. It has the same events under the
// same ids, times and producer. Hashes are longer than what they stand for, so a large frame may become several, of
// which the first alone is the producer's: the windows tell repetitions by it. The same frame, topic and key give the
// same bytes.
func (r *Reader) Ruled(f schemas.Frame, key []byte) ([]Made, error) {
	left := r.topic.RulesAfter(f.Schema)
	if left == nil {
		return nil, nil
	}
	privacy, b := privacy.New(left, key), NewBuilder(r.topic)
	var out []Made
	flush := func() error {
		made, payload := b.Encode()
		if len(payload) > schemas.MaxFrameBytes { // Fits leaves room, so one event alone can be
			return fmt.Errorf("%w: %d bytes encoded under the topic's privacy rules, the limit is %d", schemas.ErrFrameTooLarge, len(payload), schemas.MaxFrameBytes)
		}
		if len(out) == 0 {
			made.Producer, made.Seq = f.Producer, f.Seq
		}
		out = append(out, Made{made, bytes.Clone(payload), b.IDSum()})
		b.Reset()
		return nil
	}
	for i := range r.rows {
		e := r.Event(i)
		// The builder sets the mark of invalid text again.
		e.Attrs = slices.DeleteFunc(e.Attrs, func(a schemas.Attr) bool { return a.Key == schemas.AttrInvalidUTF8 })
		privacy.Apply(&e)
		if !b.Fits(&e) {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		b.Append(&e, r.Ts(i), e.ID)
	}
	if err := flush(); err != nil {
		return nil, err
	}
	return out, nil
}
