package router

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

// A lane of a topic whose kind has a front reads records in place of frames. Each record
// is an event at the time of its change. Consecutive records of a month become one
// frame, since a frame of one record would cost more than the record.

// recordEvents turn a record of each kind into the event of its row. They do no I/O. What
// is not a record is schemas.ErrRecord or schemas.ErrSubject.
var recordEvents = map[schemas.Kind]func(*schemas.Topic, *message) (schemas.Event, error){
	kinds.Document: documentEvent,
	kinds.Timer:    timerEvent,
}

func timerEvent(t *schemas.Topic, m *message) (schemas.Event, error) {
	r, err := timer.Parse(m.subject, m.seq, m.header, m.data)
	if err != nil {
		return schemas.Event{}, err
	}
	if lane := r.Key.Slot % t.Lanes; lane != r.Key.Lane {
		return schemas.Event{}, fmt.Errorf("%w: timer %q belongs to lane %d, and not to %d", schemas.ErrRecord, r.Key.ID, lane, r.Key.Lane)
	}
	return r.Event()
}

func documentEvent(t *schemas.Topic, m *message) (schemas.Event, error) {
	r, err := document.Parse(m.subject, m.seq, m.header, m.data, len(m.data))
	if err != nil {
		return schemas.Event{}, err
	}
	if lane := document.Lane(t, r.ID); strconv.Itoa(lane) != r.Lane {
		return schemas.Event{}, fmt.Errorf("%w: document %q belongs to lane %d, and not to %s", schemas.ErrRecord, r.ID, lane, r.Lane)
	}
	return r.Event(t), nil
}

// runRows bounds the messages that one call of run looks at. Full bounds the rows and bytes of the frame, as a producer's.
const runRows = schemas.FrameRows

// run decides about the first messages of msgs, at least one, that can go together: n of
// them. They are records of one month, which become one frame; or a single message that
// is none, which becomes a dead letter; or one that is not an event.
func (j *evaluator) run(msgs []message, lane int) (out evaluated, n int) {
	var b *frame.Builder
	for ; n < len(msgs) && n < runRows; n++ {
		m := &msgs[n]
		if m.isStored || !schemas.IsEvent(m.header, len(m.data)) || !schemas.Indexed(m.subject) {
			continue // it only moves the checkpoint; of what NATS does not index foreign.go keeps a letter
		}
		e, ts, err := j.record(m)
		if err != nil {
			if b != nil {
				break // a run of its own
			}
			return evaluated{dead: []deadLetter{{payload: m.data, events: 1, err: err}}}, n + 1
		}
		month := schemas.MonthOf(ts)
		if b == nil {
			b, out.month, out.lane, out.first = frame.NewBuilder(j.topic), month, lane, m.seq
		}
		if month != out.month || b.Full() || !b.Fits(&e) || b.Rows() > 0 && b.RawBytes()+e.Bytes() > schemas.FrameRawBytes {
			break
		}
		b.Append(&e, ts, schemas.SequenceID(ts, m.seq, 0))
		out.last = m
	}
	if b == nil {
		return out, n
	}
	f, payload := b.Encode()
	out.frames = []routedFrame{{f, bytes.Clone(payload), b.IDSum()}}
	return out, n
}

// record is the event of a record, and its time in unix ns.
func (j *evaluator) record(m *message) (schemas.Event, int64, error) {
	event := recordEvents[j.topic.Kind]
	if event == nil {
		return schemas.Event{}, 0, fmt.Errorf("%w: topics of kind %q are not routed by this version", schemas.ErrRecord, j.topic.Kind)
	}
	if len(m.data) > schemas.MaxDocumentBytes {
		return schemas.Event{}, 0, fmt.Errorf("%w: a body of %d bytes, the limit is %d", schemas.ErrRecord, len(m.data), schemas.MaxDocumentBytes)
	}
	e, err := event(j.topic, m)
	if err != nil {
		if !errors.Is(err, schemas.ErrRecord) {
			err = fmt.Errorf("%w: %w", schemas.ErrRecord, err)
		}
		if schemas.Replaces(m.header) {
			err = fmt.Errorf("%w: %w", schemas.ErrReplaced, err)
		}
		return e, 0, err
	}
	// A record was acknowledged, so it has its row, whatever its writer's clock said: a document without one
	// could not leave DOCS. Writers take the server's clock (streams.Clock).
	ts, err := schemas.UnixNs(e.Time)
	return e, ts, err
}
