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
	m := remaker{of: f}
	for i := range r.rows {
		e := r.remade(i)
		privacy.Apply(&e)
		if !b.Fits(&e) {
			if err := m.flush(b); err != nil {
				return nil, err
			}
		}
		b.Append(&e, r.Ts(i), e.ID)
	}
	if err := m.flush(b); err != nil {
		return nil, err
	}
	return m.out, nil
}

// remaker gathers the frames that are made of another.
type remaker struct {
	of  schemas.Frame
	out []Made
}

// flush takes the events that a builder has. The first frame is the producer's.
func (m *remaker) flush(b *Builder) error {
	made, payload := b.Encode()
	if len(payload) > schemas.MaxFrameBytes { // Fits leaves room, so one event alone can be
		return fmt.Errorf("%w: %d bytes when it is encoded again under the topic's rules, the limit is %d", schemas.ErrFrameTooLarge, len(payload), schemas.MaxFrameBytes)
	}
	if len(m.out) == 0 {
		made.Producer, made.Seq = m.of.Producer, m.of.Seq
	}
	m.out = append(m.out, Made{made, bytes.Clone(payload), b.IDSum()})
	b.Reset()
	return nil
}

// flushAll adds what several builders have, in their order.
func (m *remaker) flushAll(bs []*Builder) error {
	for _, b := range bs {
		if b.Rows() == 0 {
			continue
		}
		if err := m.flush(b); err != nil {
			return err
		}
	}
	return nil
}

// remade is event i for a builder, which sets the mark of invalid text again.
func (r *Reader) remade(i int) schemas.Event {
	e := r.Event(i)
	e.Attrs = slices.DeleteFunc(e.Attrs, func(a schemas.Attr) bool { return a.Key == schemas.AttrInvalidUTF8 })
	return e
}
