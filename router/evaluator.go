package router

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// message is one message of EVENTS or of a front.
type message struct {
	subject  string
	header   nats.Header
	data     []byte
	seq      uint64
	stored   time.Time
	pending  uint64 // messages of the lane behind it, as the server counts them
	isStored bool   // a record that the lane passes over: its row is there
}

func (m *message) source() schemas.Source {
	return schemas.Source{Seq: m.seq, Stored: m.stored.UnixNano()}
}

// evaluated is what became of a message: frames to place, events to keep as dead
// letters, or a frame that came before. Exactly one message gives exactly one
// evaluated, and a re-run gives the same.
type evaluated struct {
	month    schemas.Month
	lane     int
	frames   []routedFrame
	dead     []deadLetter
	repeated bool
	rows     int // of a repeated frame
	kept     int // events of a dead letter that is there already
	// isStored: a repair found its frames stored, or some of them.
	isStored bool
	// elsewhere: another lane deals with the message, and has not yet.
	elsewhere bool
	// refused is the intact frame of a dead letter, for the windows to take: sent again it is a
	// repetition.
	refused *schemas.Frame

	// Of a run of records: the sequence of the first and the last record itself.
	first uint64
	last  *message
}

// routedFrame is a frame as it will be published.
type routedFrame struct {
	schemas.Frame
	payload []byte
	ids     uint64 // frame.Reader.IDSum
}

// deadLetter is what could not be routed, and why.
type deadLetter struct {
	payload []byte
	events  int
	lines   []int          // of an NDJSON message; nil: the whole message
	rules   string         // that were applied to the payload, as schemas.HeaderRules says it
	frame   *schemas.Frame // nil: the message's own headers are the payload's
	err     error
}

// evaluator decides about messages of one topic. It does no I/O and reads no clock.
type evaluator struct {
	topic  *schemas.Topic // nil: it was never declared
	key    []byte         // of the topic's hash rules
	reader frame.Reader
}

// message decides about one message. The first reason that holds is given: it came before,
// its topic, its subject, a blank, what EVENTS says of it, its headers, its frame.
func (j *evaluator) message(m *message, ws checkpoint.Windows) evaluated {
	var out evaluated
	refuse := func(err error) evaluated {
		out.frames, out.dead, out.refused = nil, []deadLetter{j.letter(m, deadLetter{events: claimedRows(m.header), err: err})}, refusedFrame(m, err)
		return out
	}
	var f schemas.Frame
	headersErr := schemas.ErrFrameHeaders
	if schemas.HasFrameHeaders(m.header) {
		f, headersErr = schemas.ParseFrame(m.header)
	}
	verdict := checkpoint.Fresh
	if headersErr == nil && !schemas.IsBlank(m.header, m.data) {
		// First: what came before is not refused for what the topic became since.
		if verdict = ws.Check(f); verdict == checkpoint.Repeated {
			out.repeated, out.rows = true, f.Rows
			return out
		}
	}
	if j.topic == nil {
		name, _, _, err := schemas.EventsTokens(m.subject)
		if err != nil {
			return refuse(err)
		}
		if err := schemas.ValidateTopicName(name); err != nil {
			return refuse(err)
		}
		return refuse(fmt.Errorf("%w: %q", schemas.ErrUnknownTopic, name))
	}
	var err error
	if out.month, out.lane, err = schemas.ParseEventsSubject(m.subject, j.topic); err != nil {
		return refuse(err)
	}
	if schemas.IsBlank(m.header, m.data) {
		return out
	}
	if err := j.topic.CheckEvents(); err != nil {
		return refuse(err)
	}
	if !schemas.HasFrameHeaders(m.header) {
		if err := j.topic.CheckKeep(out.month, m.stored); err != nil {
			return refuse(err)
		}
		out.frames, out.dead = j.bare(m, out.month, out.lane)
		return out
	}
	if headersErr != nil {
		return refuse(headersErr)
	}
	if verdict == checkpoint.Stale {
		return refuse(staleFrame(ws, f))
	}
	if err := j.topic.CheckKeep(out.month, m.stored); err != nil {
		return refuse(err)
	}
	if err := j.reader.Open(m.data, j.topic, f.Schema); err != nil {
		return refuse(err)
	}
	if err := j.reader.Check(f, out.month, out.lane, m.stored.UnixNano()); err != nil {
		return refuse(err)
	}
	if out.frames, err = j.ruled(f, m, &out); err != nil {
		return refuse(err)
	}
	return out
}

// letter fills in what a dead letter keeps of a message: all of it, unless the topic
// has privacy rules. A frame had those applied that its producer knew (ruled.go). To JSON they are
// applied here; a line that is not JSON is withheld, because it cannot be told what
// it would give away.
func (j *evaluator) letter(m *message, d deadLetter) deadLetter {
	d.payload = m.data
	if j.topic == nil || len(j.topic.PII) == 0 {
		return d
	}
	if schemas.HasFrameHeaders(m.header) && frame.IsFramed(m.data) {
		return j.frameLetter(m, d)
	}
	privacy := privacy.New(j.topic, j.key)
	d.rules = j.topic.RuleMarks()
	if clean, ok := privacy.Clean(m.data); ok && len(clean) <= schemas.MaxMessageBytes {
		d.payload = clean
		return d
	}
	d.payload = nil
	for _, text := range bytes.Split(bytes.TrimRight(m.data, "\n"), []byte("\n")) {
		if len(bytes.TrimSpace(text)) > 0 {
			d.payload = append(append(d.payload, readable(privacy, text)...), '\n')
		}
	}
	if len(d.payload) > schemas.MaxMessageBytes {
		d.payload = []byte(schemas.Withheld(len(m.data)))
	}
	return d
}

// readable is what a dead letter keeps of a line of bare JSON.
func readable(privacy *privacy.Rules, line []byte) []byte {
	if privacy == nil {
		return line
	}
	if clean, ok := privacy.Clean(line); ok {
		return clean
	}
	return []byte(schemas.Withheld(len(line)))
}

// claimedRows is how many events a refused message stands for, as far as it can
// be told: what its headers say, and 1 when they say nothing.
func claimedRows(h nats.Header) int {
	if f, err := schemas.ParseFrame(h); err == nil {
		return f.Rows
	}
	return 1
}

// bareSlack is how far outside its subject's month a message without an event
// time may be stored and still count as of that month's edge: the way from a
// publisher that named the month to the server, over midnight.
const bareSlack = time.Hour

// bare makes frames of one JSON event or of NDJSON. Lines that are refused
// become dead letters, one for each reason; the others are not harmed.
func (j *evaluator) bare(m *message, month schemas.Month, lane int) ([]routedFrame, []deadLetter) {
	// The n-th line with an id goes to the n-th builder, where rows are named by their ids and frames.
	builders, had := []*frame.Builder{frame.NewBuilder(j.topic)}, map[schemas.ID]int{}
	privacy, keys := privacy.New(j.topic, j.key), rawjson.Keys{Topic: j.topic}
	var frames []routedFrame
	var dead []deadLetter
	flush := func(b *frame.Builder) {
		if b.Rows() == 0 {
			return
		}
		f, payload := b.Encode()
		if len(payload) > schemas.MaxFrameBytes { // Fits leaves room, so it cannot be; if it is, nothing is lost
			err := fmt.Errorf("%w: %d bytes encoded, the limit is %d", schemas.ErrFrameTooLarge, len(payload), schemas.MaxFrameBytes)
			dead = append(dead, j.letter(m, deadLetter{events: b.Rows(), err: err}))
		} else {
			frames = append(frames, routedFrame{f, bytes.Clone(payload), b.IDSum()})
		}
		b.Reset()
	}
	lines := bytes.Split(bytes.TrimRight(m.data, "\n"), []byte("\n"))
	refuse := func(line int, text []byte, err error) {
		if len(lines) == 1 {
			dead = append(dead, j.letter(m, deadLetter{events: 1, err: err}))
			return
		}
		reason := schemas.Reason(err)
		i := slices.IndexFunc(dead, func(d deadLetter) bool { return schemas.Reason(d.err) == reason })
		if i < 0 {
			dead = append(dead, deadLetter{err: err, rules: j.topic.RuleMarks()})
			i = len(dead) - 1
		}
		d := &dead[i]
		d.events++
		d.lines = append(d.lines, line)
		d.payload = append(append(d.payload, readable(privacy, text)...), '\n')
	}

	add := func(line int, text []byte) error {
		e, err := keys.Parse(text)
		if err != nil {
			return err
		}
		tsNs, err := bareTime(&e, month, m.stored)
		if err != nil {
			return err
		}
		if privacy != nil {
			privacy.Apply(&e)
		}
		j.topic.Complete(&e)
		if err := j.topic.CutBodies(&e); err != nil {
			return err
		}
		if err := j.topic.Check(&e, tsNs, m.stored.UnixNano()); err != nil {
			return err
		}
		if err := j.topic.CheckTimes(tsNs, tsNs, month, m.stored.UnixNano()); err != nil {
			return err
		}
		if e.ID.IsZero() {
			e.ID = schemas.SequenceID(m.stored.UnixNano(), m.seq, uint64(line))
		}
		if err := j.topic.CheckLane(&e, tsNs, lane); err != nil {
			return err
		}
		n := 0
		if j.topic.HasOnce() {
			if n = had[e.ID]; n == schemas.MaxSameIDs {
				return fmt.Errorf("%w: %d lines before it have the id %s, a message to topic %q may have as many: `almanac dead retry %s` sends it by itself",
					schemas.ErrSameID, n, e.ID, j.topic.Name, j.topic.Name)
			}
			if had[e.ID]++; n == len(builders) {
				builders = append(builders, frame.NewBuilder(j.topic))
			}
		}
		b := builders[n]
		if !b.Fits(&e) {
			flush(b)
		}
		b.Append(&e, tsNs, e.ID)
		if b.Full() {
			flush(b)
		}
		return nil
	}
	if len(lines) > 1 && add(1, m.data) == nil { // one object over several lines
		lines = nil
	}
	for i, text := range lines {
		if len(bytes.TrimSpace(text)) == 0 && len(lines) > 1 {
			continue
		}
		if err := add(i+1, text); err != nil {
			refuse(i+1, text, err)
		}
	}
	for _, b := range builders {
		flush(b)
	}
	for i := range dead {
		if d := &dead[i]; len(d.payload) > schemas.MaxMessageBytes { // hashes are longer than what they stand for
			d.payload = []byte(schemas.Withheld(len(d.payload)))
		}
	}
	return frames, dead
}

// bareTime is the event's own time, or else the time it was stored at, moved to
// the edge of the subject's month when it is just beyond.
func bareTime(e *schemas.Event, month schemas.Month, stored time.Time) (int64, error) {
	if !e.Time.IsZero() {
		return schemas.UnixNs(e.Time)
	}
	ts := stored.UnixNano()
	if lo := month.Start(); ts < lo && lo-ts <= int64(bareSlack) {
		return lo, nil
	}
	if hi := month.End() - 1; ts > hi && ts-hi <= int64(bareSlack) {
		return hi, nil
	}
	return ts, nil
}

// FramesOf gives the frames of a message of EVENTS as a router with this
// PrivacyKey would make them, whatever came before, and how many dead letters it would
// keep of the message.
func FramesOf(key []byte) func(*schemas.Topic, *streams.Message) (frames []schemas.Frame, payloads [][]byte, dead int) {
	return func(t *schemas.Topic, msg *streams.Message) ([]schemas.Frame, [][]byte, int) {
		j := evaluator{topic: t, key: key}
		m := message{subject: msg.Subject, header: msg.Header, data: msg.Data, seq: msg.Sequence, stored: msg.Time}
		out := j.message(&m, nil)
		frames, payloads := make([]schemas.Frame, len(out.frames)), make([][]byte, len(out.frames))
		for i, f := range out.frames {
			frames[i], payloads[i] = f.Frame, f.payload
		}
		return frames, payloads, len(out.dead)
	}
}
