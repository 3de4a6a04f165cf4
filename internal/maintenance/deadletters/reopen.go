package deadletters

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// outFrame is a frame to publish, complete but for its producer.
type outFrame struct {
	schemas.Frame
	month   schemas.Month
	lane    int
	payload []byte
}

// message is the frame as the letter's number makes it: the same each time.
func (f *outFrame) message(topic string, l *letter, part int) *nats.Msg {
	f.Producer, f.Seq = producerOf(topic, l.Seq, l.at, part)
	return schemas.EventsFrame(topic, f.month, f.lane, f.Frame, f.payload)
}

// producerOf is who sends a letter again, and the number of the frame. Letters that
// share a producer are less than the router's window apart, and of one minute: SHARDS gives
// a sequence again after it lost its end, and another letter must not pass for the one
// that was sent again under it before.
func producerOf(topic string, letter uint64, at time.Time, part int) (string, uint64) {
	sum := sha256.Sum256(fmt.Appendf(nil, "letter %s %d %d", topic, letter/schemas.MaxInFlight, at.Unix()/60))
	name := hex.EncodeToString(sum[:8])
	if part > 0 {
		name += "-" + strconv.Itoa(part)
	}
	return name, letter%schemas.MaxInFlight + 1
}

// reopen makes frames of what a letter holds, or says why it would be refused
// again. now is in unix ns; key is that of the topic's hash rules.
func reopen(t *schemas.Topic, l *letter, now int64, key []byte) ([]outFrame, error) {
	p := press{topic: t, letter: l.Seq, at: l.at, now: now, builders: map[slot]*frame.Builder{}}
	var err error
	if schemas.HasFrameHeaders(withoutRows(l.header)) {
		err = p.frame(l, key)
	} else {
		// The router applied the rules that the letter names; a hash must not be
		// hashed again.
		err = p.rules(t.RulesLeft(l.header.Get(schemas.HeaderRules)), key)
		if err == nil {
			err = p.lines(l.data)
		}
	}
	if err != nil {
		return nil, err
	}
	return p.end(), nil
}

// withoutRows leaves out the header that every dead letter has.
func withoutRows(h nats.Header) nats.Header {
	h = maps.Clone(h)
	delete(h, schemas.HeaderRows)
	return h
}

// slot is where events go.
type slot struct {
	month schemas.Month
	lane  int
}

// press puts a letter's events into frames.
type press struct {
	topic    *schemas.Topic
	letter   uint64
	at       time.Time // of the letter
	now      int64
	privacy  *privacy.Rules // that the events lack
	builders map[slot]*frame.Builder
	out      []outFrame
}

// rules has the events come under the rules of a topic that they lack.
func (p *press) rules(left *schemas.Topic, key []byte) error {
	if len(key) == 0 && left.NeedsPrivacyKey() {
		return fmt.Errorf("%w: topic %q hashes fields and pii_key is not set; set it to what the routers have", schemas.ErrPrivacyKey, p.topic.Name)
	}
	p.privacy = privacy.New(left, key)
	return nil
}

// frame takes a frame's events, and its bytes as they are where nothing but the
// producer has to change. Rules that are newer than the frame are applied to its events.
func (p *press) frame(l *letter, key []byte) error {
	var r frame.Reader
	f, headerErr := schemas.ParseFrame(l.header)
	err := headerErr
	if headerErr == nil {
		err = r.Open(l.data, p.topic, f.Schema)
	}
	for v := p.topic.Version; err != nil && v > 0; v-- { // its headers may lie
		if f.Schema, headerErr = v, schemas.ErrFrameHeaders; r.Open(l.data, p.topic, v) == nil {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	if headerErr != nil { // of versions with the same columns it may be any: rather a rule twice than in clear
		for f.Schema > 1 && frame.SameColumns(p.topic, f.Schema, p.topic, f.Schema-1) {
			f.Schema--
		}
	}
	left := p.topic.RulesAfter(f.Schema)
	if left != nil {
		if err := p.rules(left, key); err != nil {
			return err
		}
	}
	month, lane, subjectErr := schemas.ParseEventsSubject(l.subject, p.topic)
	if left == nil && headerErr == nil && subjectErr == nil && r.Check(f, month, lane, p.now) == nil {
		p.out = append(p.out, outFrame{Frame: f, month: month, lane: lane, payload: l.data})
		return nil
	}
	for i := range r.Rows() {
		e := r.Event(i)
		// The builder sets the mark of invalid text again.
		e.Attrs = slices.DeleteFunc(e.Attrs, func(a schemas.Attr) bool { return a.Key == schemas.AttrInvalidUTF8 })
		if err := p.add(&e, i+1); err != nil {
			return fmt.Errorf("event %d of %d: %w", i+1, r.Rows(), err)
		}
	}
	return nil
}

// lines takes JSON: one object, or one a line.
func (p *press) lines(data []byte) error {
	keys := rawjson.Keys{Topic: p.topic}
	if e, err := keys.Parse(data); err == nil {
		return p.add(&e, 1)
	}
	n := 0
	for text := range bytes.Lines(data) {
		if n++; len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		e, err := keys.Parse(bytes.TrimSpace(text))
		if err == nil {
			err = p.add(&e, n)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if len(p.builders)+len(p.out) == 0 {
		return fmt.Errorf("%w: it is empty", schemas.ErrNotJSON)
	}
	return nil
}

// add takes one event. One without a time happened when the letter was written, as
// near as is still known.
func (p *press) add(e *schemas.Event, line int) error {
	if e.Time.IsZero() {
		e.Time = p.at
	}
	ts, err := schemas.UnixNs(e.Time)
	if err != nil {
		return err
	}
	if p.privacy != nil {
		p.privacy.Apply(e)
	}
	p.topic.Complete(e)
	if err := p.topic.CutBodies(e); err != nil {
		return err
	}
	if err := p.topic.Check(e, ts, p.now); err != nil {
		return err
	}
	if e.ID.IsZero() {
		// By the letter's time too: SHARDS gives a sequence again after it lost its end.
		e.ID = schemas.SequenceID(p.at.UnixNano(), p.letter, uint64(line))
	}
	producer, _ := producerOf(p.topic.Name, p.letter, p.at, 0)
	at := slot{schemas.MonthOf(ts), schemas.LaneOf(p.topic, e, ts, producer)}
	b := p.builders[at]
	if b == nil {
		b = frame.NewBuilder(p.topic)
		p.builders[at] = b
	}
	once := p.topic.HasOnce()
	if !b.Fits(e) || once && b.IDs.Often(e.ID) {
		p.close(at, b)
	}
	if once {
		b.IDs.Add(e.ID)
	}
	b.Append(e, ts, e.ID)
	if b.Full() {
		p.close(at, b)
	}
	return nil
}

func (p *press) close(at slot, b *frame.Builder) {
	f, payload := b.Encode()
	p.out = append(p.out, outFrame{Frame: f, month: at.month, lane: at.lane, payload: bytes.Clone(payload)})
	b.Reset()
}

// end closes what is open, always in the same order.
func (p *press) end() []outFrame {
	slots := slices.SortedFunc(maps.Keys(p.builders), func(a, b slot) int {
		if a.month != b.month {
			return int(a.month) - int(b.month)
		}
		return a.lane - b.lane
	})
	for _, at := range slots {
		if b := p.builders[at]; b.Rows() > 0 {
			p.close(at, b)
		}
	}
	return p.out
}
