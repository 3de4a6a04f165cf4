package router

import (
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// A producer reads its topic's privacy rules when it starts. A frame says by its schema version which rules those
// were: the others are applied here, so that from a rule on nothing is stored without it, however old its producer
// is and however late the frame comes, of a spool for example. EVENTS has the frame as it came until it was routed.

// ruled makes the frames to store of the open frame f, which its headers describe truly: itself, or what the rules
// leave of it that it was made without, for the month and lane that it came by.
func (j *evaluator) ruled(f schemas.Frame, m *message, at *evaluated) ([]routedFrame, error) {
	made, err := j.reader.Ruled(f, j.key)
	if err != nil {
		return nil, err
	}
	if made == nil {
		return j.apart(routedFrame{f, m.data, j.reader.IDSum()}, m, at)
	}
	var out []routedFrame
	for _, f := range made {
		if err := j.reopen(f, m, at); err != nil {
			return nil, err
		}
		parts, err := j.apart(routedFrame{f.Frame, f.Payload, f.IDSum}, m, at)
		if err != nil {
			return nil, err
		}
		out = append(out, parts...)
	}
	return out, nil
}

// apart is the open frame f, or several where f has two events of one id and rows are named by those.
func (j *evaluator) apart(f routedFrame, m *message, at *evaluated) ([]routedFrame, error) {
	made, err := j.reader.Apart(f.Frame)
	if err != nil {
		return nil, err
	}
	if made == nil {
		return []routedFrame{f}, nil
	}
	out := make([]routedFrame, len(made))
	for i, f := range made {
		if err := j.reopen(f, m, at); err != nil {
			return nil, err
		}
		out[i] = routedFrame{f.Frame, f.Payload, f.IDSum}
	}
	return out, nil
}

// reopen opens and checks a frame that was made of the message's.
func (j *evaluator) reopen(f frame.Made, m *message, at *evaluated) error {
	if err := j.reader.Open(f.Payload, j.topic, f.Schema); err != nil {
		return err
	}
	return j.reader.Check(f.Frame, at.month, at.lane, m.stored.UnixNano())
}

// frameLetter fills in what a dead letter keeps of a frame: all of it, or what the rules leave of it that it was made
// without. Where those cannot be applied it is withheld.
func (j *evaluator) frameLetter(m *message, d deadLetter) deadLetter {
	f := claimed(m.header)
	if j.topic.RulesAfter(f.Schema) == nil {
		return d
	}
	if j.reader.Open(m.data, j.topic, f.Schema) == nil {
		for _, key := range [][]byte{j.key, nil} { // without a key hashes are dropped, and it stays one frame
			if made, err := j.reader.Ruled(f, key); err == nil && len(made) == 1 {
				d.payload, d.frame = made[0].Payload, &made[0].Frame
				return d
			}
		}
	}
	d.payload = []byte(schemas.WithheldFrame(len(m.data)))
	return d
}

// claimed is what headers say of a frame, as far as they can be read. Of one that does not say its schema version it
// is taken that its producer knew the topic's first rules alone.
func claimed(h nats.Header) schemas.Frame {
	f, err := schemas.ParseFrame(h)
	if err != nil {
		f = schemas.Frame{Schema: 1, Producer: h.Get(schemas.HeaderProducer)}
		if v, err := strconv.Atoi(h.Get(schemas.HeaderSchema)); err == nil && v > 0 {
			f.Schema = v
		}
		f.Seq, _ = strconv.ParseUint(h.Get(schemas.HeaderSeq), 10, 64)
	}
	return f
}
