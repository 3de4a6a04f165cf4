package router

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/frame"
)

var (
	testTopic = newTopic(schemas.Field{Name: "n", Type: schemas.TypeInt64})
	noon      = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

// newTopic is app, of four lanes.
func newTopic(fields ...schemas.Field) schemas.Topic {
	t := schemas.NewTopic("app", fields...)
	t.Lanes = 4
	return t
}

func frameMessage(t testing.TB, at time.Time, seq uint64, change func(*message)) message {
	t.Helper()
	b := frame.NewBuilder(&testTopic)
	for i := range 3 {
		e := schemas.Event{Message: "hi", UserID: "u", Attrs: []schemas.Attr{schemas.Int64("n", int64(i))}}
		b.Append(&e, at.UnixNano()+int64(i), schemas.NewID(at.UnixNano()))
	}
	f, payload := b.Encode()
	f.Producer, f.Seq = "p", seq
	m := message{subject: schemas.EventsSubject("app", schemas.MonthOf(at.UnixNano()), 1), header: nats.Header{}, data: bytes.Clone(payload), seq: 7, stored: noon}
	f.SetHeaders(m.header)
	if change != nil {
		change(&m)
	}
	return m
}

func set(key, value string) func(*message) {
	return func(m *message) { m.header.Set(key, value) }
}

func TestEvaluateFrames(t *testing.T) {
	for name, c := range map[string]struct {
		at     time.Time
		change func(*message)
		want   error // nil: routed
	}{
		"good":               {noon, nil, nil},
		"old month":          {noon.AddDate(-30, 0, 0), nil, nil},
		"23 h ahead":         {noon.Add(23 * time.Hour), nil, nil},
		"25 h ahead":         {noon.Add(25 * time.Hour), nil, schemas.ErrTimeTooFarAhead},
		"month 13":           {noon, func(m *message) { m.subject = "events.app.2026-13.1" }, schemas.ErrMonth},
		"not a month":        {noon, func(m *message) { m.subject = "events.app.now.1" }, schemas.ErrMonth},
		"another month":      {noon, func(m *message) { m.subject = "events.app.2026-10.1" }, schemas.ErrFrameMonth},
		"lane 4 of 4":        {noon, func(m *message) { m.subject = "events.app.2026-11.4" }, schemas.ErrSubject},
		"lane 01":            {noon, func(m *message) { m.subject = "events.app.2026-11.01" }, schemas.ErrSubject},
		"lane x":             {noon, func(m *message) { m.subject = "events.app.2026-11.x" }, schemas.ErrSubject},
		"rows lie":           {noon, set(schemas.HeaderRows, "4"), schemas.ErrFrameLies},
		"bytes lie":          {noon, set(schemas.HeaderBytes, "17"), schemas.ErrFrameLies},
		"min lies":           {noon, set(schemas.HeaderMinTs, "5"), schemas.ErrFrameLies},
		"max lies":           {noon, set(schemas.HeaderMaxTs, "5"), schemas.ErrFrameLies},
		"rows missing":       {noon, func(m *message) { m.header.Del(schemas.HeaderRows) }, schemas.ErrFrameHeaders},
		"rows zero":          {noon, set(schemas.HeaderRows, "0"), schemas.ErrFrameHeaders},
		"rows huge":          {noon, set(schemas.HeaderRows, "99999999999999999999"), schemas.ErrFrameHeaders},
		"seq zero":           {noon, set(schemas.HeaderSeq, "0"), schemas.ErrFrameHeaders},
		"producer huge":      {noon, set(schemas.HeaderProducer, strings.Repeat("x", 65)), schemas.ErrFrameHeaders},
		"schema of tomorrow": {noon, set(schemas.HeaderSchema, "2"), schemas.ErrFrameSchema},
		"schema zero":        {noon, set(schemas.HeaderSchema, "0"), schemas.ErrFrameSchema},
		"one bit flipped":    {noon, func(m *message) { m.data[len(m.data)/2] ^= 4 }, schemas.ErrFrameCorrupt},
		"cut short":          {noon, func(m *message) { m.data = m.data[:len(m.data)-1] }, schemas.ErrFrameCorrupt},
		"empty":              {noon, func(m *message) { m.data = nil }, schemas.ErrFrameCorrupt},
		"too large":          {noon, func(m *message) { m.data = make([]byte, schemas.MaxFrameBytes+1) }, schemas.ErrFrameTooLarge},
		"JSON with headers":  {noon, func(m *message) { m.data = []byte(`{"message":"this one is long enough"}`) }, schemas.ErrFrameCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			m := frameMessage(t, c.at, 1, c.change)
			j := evaluator{topic: &testTopic}
			got := j.message(&m, nil)
			if c.want == nil {
				if len(got.frames) != 1 || len(got.dead) != 0 || got.frames[0].Rows != 3 {
					t.Fatalf("not routed: %+v", got)
				}
				return
			}
			if len(got.frames) != 0 || len(got.dead) != 1 || !errors.Is(got.dead[0].err, c.want) {
				t.Fatalf("got %+v, want one dead letter with %v", got, c.want)
			}
			if !bytes.Equal(got.dead[0].payload, m.data) {
				t.Error("the dead letter is not the message whole")
			}
			if reasonOf(got.dead[0].err) == "" {
				t.Errorf("%v has no word", got.dead[0].err)
			}
		})
	}
}

func TestEvaluateTopics(t *testing.T) {
	m := frameMessage(t, noon, 1, nil)
	j := evaluator{}
	if got := j.message(&m, nil); !errors.Is(got.dead[0].err, schemas.ErrUnknownTopic) {
		t.Errorf("got %v, want an unknown topic", got.dead[0].err)
	}
	m.subject = "events.App.2026-11.0"
	if got := j.message(&m, nil); !errors.Is(got.dead[0].err, schemas.ErrTopicName) {
		t.Errorf("got %v, want a bad topic name", got.dead[0].err)
	}
}

func TestEvaluatorRefusesWhatCameBefore(t *testing.T) {
	m := frameMessage(t, noon, 5, nil)
	var ws checkpoint.Windows
	ws = ws.Take(schemas.Frame{Producer: "p", Seq: 5}, 1)
	j := evaluator{topic: &testTopic}
	if got := j.message(&m, ws); !got.repeated || got.rows != 3 || len(got.frames)+len(got.dead) != 0 {
		t.Errorf("got %+v, want a repeated frame of 3 rows", got)
	}
	ws = ws.Take(schemas.Frame{Producer: "p", Seq: 500}, 2)
	if got := j.message(&m, ws); len(got.dead) != 1 || !errors.Is(got.dead[0].err, ErrStaleSeq) {
		t.Errorf("got %+v, want a stale sequence kept", got)
	}
}

func TestEvaluateBareJSON(t *testing.T) {
	november := schemas.Month(202611)
	for name, c := range map[string]struct {
		text   string
		stored time.Time
		rows   int
		dead   map[string]int // reason: events
	}{
		"one":             {`{"message":"hi","user_id":"u-7","n":5}`, noon, 1, nil},
		"pretty":          {"{\n \"message\": \"hi\"\n}\n", noon, 1, nil},
		"lines":           {"{\"message\":\"a\"}\n\n{\"message\":\"b\"}\n", noon, 2, nil},
		"mixed":           {"{\"message\":\"a\"}\nnonsense\n{\"message\":\"b\"}\n{\"ts\":0}\nmore nonsense", noon, 2, map[string]int{"not-json": 2, "time-zero": 1}},
		"garbage":         {"\x00\xff garbage", noon, 0, map[string]int{"not-json": 1}},
		"empty":           {"", noon, 0, map[string]int{"not-json": 1}},
		"array":           {"[1,2]", noon, 0, map[string]int{"bad-json-event": 1}},
		"own time":        {`{"ts":"2026-11-01T00:00:00Z"}`, noon, 1, nil},
		"another month":   {`{"ts":"2026-10-31T23:59:59Z"}`, noon, 0, map[string]int{"wrong-month": 1}},
		"far ahead":       {`{"ts":"2026-11-29T00:00:00Z"}`, noon, 0, map[string]int{"time-too-far-ahead": 1}},
		"before 1970":     {`{"ts":"1969-11-29T00:00:00Z"}`, noon, 0, map[string]int{"time-too-old": 1}},
		"too large":       {`{"message":"` + strings.Repeat("x", schemas.MaxEventBytes+1) + `"}`, noon, 0, map[string]int{"event-too-large": 1}},
		"just past month": {`{"message":"late"}`, time.Date(2026, 12, 1, 0, 0, 1, 0, time.UTC), 1, nil},
		"long past month": {`{"message":"late"}`, time.Date(2026, 12, 1, 2, 0, 0, 0, time.UTC), 0, map[string]int{"wrong-month": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m := message{subject: schemas.EventsSubject("app", november, 0), data: []byte(c.text), seq: 9, stored: c.stored}
			j := evaluator{topic: &testTopic}
			got := j.message(&m, nil)
			rows := 0
			for _, f := range got.frames {
				var r frame.Reader
				if err := r.Open(f.payload, &testTopic, f.Schema); err != nil {
					t.Fatal(err)
				}
				if err := r.Check(f.Frame, november, 0, c.stored.UnixNano()); err != nil {
					t.Fatal(err)
				}
				rows += f.Rows
			}
			if rows != c.rows {
				t.Errorf("%d events are routed, want %d", rows, c.rows)
			}
			dead := map[string]int{}
			for _, d := range got.dead {
				dead[reasonOf(d.err)] += d.events
			}
			if len(dead) != len(c.dead) {
				t.Errorf("dead letters %v, want %v", dead, c.dead)
			}
			for reason, n := range c.dead {
				if dead[reason] != n {
					t.Errorf("%d events are dead for %q, want %d (%v)", dead[reason], reason, n, dead)
				}
			}
		})
	}
}

// A re-run decides the same, to the byte.
func TestEvaluatorIsDeterministic(t *testing.T) {
	m := message{subject: "events.app.2026-11.0", data: []byte("{\"message\":\"a\"}\n{\"message\":\"b\"}"), seq: 9, stored: noon}
	one, two := evaluator{topic: &testTopic}, evaluator{topic: &testTopic}
	a, b := one.message(&m, nil), two.message(&m, nil)
	if !bytes.Equal(a.frames[0].payload, b.frames[0].payload) {
		t.Error("two runs made two frames of one message")
	}
}

// A repair makes the frames that the router made, privacy rules applied under the
// same key: else it would take what is stored for something else.
func TestFramesOf(t *testing.T) {
	topic := newTopic()
	topic.PII = []schemas.Private{{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}}
	key := []byte("0123456789abcdef")
	raw := streams.Message{RawStreamMsg: jetstream.RawStreamMsg{Subject: schemas.EventsSubject("app", schemas.MonthOf(noon.UnixNano()), 1), Sequence: 7, Time: noon, Data: []byte(`{"message":"hi","user_id":"ada"}`)}}
	m := message{subject: raw.Subject, data: raw.Data, seq: raw.Sequence, stored: raw.Time}
	j := evaluator{topic: &topic, key: key}
	routed := j.message(&m, nil)
	frames, payloads, _ := FramesOf(key)(&topic, &raw)
	if len(frames) != 1 || len(routed.frames) != 1 || frames[0] != routed.frames[0].Frame || !bytes.Equal(payloads[0], routed.frames[0].payload) {
		t.Errorf("%+v is not what was routed, %+v", frames, routed)
	}
	if _, other, _ := FramesOf(nil)(&topic, &raw); len(other) != 1 || bytes.Equal(other[0], payloads[0]) {
		t.Error("the key changes nothing")
	}
}
