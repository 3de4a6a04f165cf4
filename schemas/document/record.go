package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Record is a version of a document.
type Record struct {
	Topic string
	First int    // Topic.First
	Lane  string // as in the subject
	ID    string
	Path  string
	// Seq is the record's sequence in DOCS; of a stub, the stub's own. 0 before it is stored.
	Seq     uint64
	Op      string
	Version uint64
	// Created is the time of the first version, Changed of this one, unix ns.
	Created, Changed int64
	By, User         string
	// Body is JSON; nil of a removed document and of a stub.
	Body []byte
	// Last is the sequence of the last message of the subject where that is not a record: a write expects
	// it. 0: the record is the last one.
	Last uint64
	// Stub and Refresh say where the row of a record is that was archived.
	Stub, Refresh *schemas.FrontPlace
}

// Removed reports whether the document is not there any more.
func (r *Record) Removed() bool { return r.Op == schemas.OpRemoved }

// Expect returns the sequence of the last message of the record's subject.
func (r *Record) Expect() uint64 { return max(r.Seq, r.Last) }

// Nothing stands for a subject that has no record, and whose last message is not one.
func Nothing(last uint64) *Record { return &Record{Op: schemas.OpRemoved, Last: last} }

// RowSeq returns the sequence that the row of the version has: of a stub and of a refresh that
// of the record which they stand for.
func (r *Record) RowSeq() uint64 {
	switch {
	case r.Stub != nil:
		return r.Stub.Seq
	case r.Refresh != nil:
		return r.Refresh.Seq
	}
	return r.Seq
}

// Subject returns the record's subject.
func (r *Record) Subject() string {
	n, _ := strconv.Atoi(r.Lane)
	return schemas.DocSubject(schemas.FrontTopic(r.Topic, r.First), n, r.ID)
}

// Header returns the record's headers but for the nonce.
func (r *Record) Header() nats.Header {
	h := nats.Header{
		schemas.HeaderOp:         {r.Op},
		schemas.HeaderVersion:    {strconv.FormatUint(r.Version, 10)},
		schemas.HeaderKeyCreated: {strconv.FormatInt(r.Created, 10)},
		schemas.HeaderChanged:    {strconv.FormatInt(r.Changed, 10)},
	}
	for name, text := range map[string]string{schemas.HeaderPath: r.Path, schemas.HeaderBy: r.By, schemas.HeaderUser: r.User} {
		if text != "" {
			h[name] = []string{text}
		}
	}
	if r.Stub != nil {
		h[schemas.HeaderStub] = []string{r.Stub.String()}
	}
	if r.Refresh != nil {
		h[schemas.HeaderRefresh] = []string{r.Refresh.String()}
	}
	return h
}

// Parse reads a record from a message of DOCS. size is that of the payload, of which
// data is nil where only headers were read.
func Parse(subject string, seq uint64, h nats.Header, data []byte, size int) (r Record, err error) {
	r = Record{Seq: seq, Op: h.Get(schemas.HeaderOp), Path: h.Get(schemas.HeaderPath), By: h.Get(schemas.HeaderBy), User: h.Get(schemas.HeaderUser), Body: data}
	topic := ""
	if topic, r.Lane, r.ID, err = schemas.DocTokens(subject); err != nil {
		return r, err
	}
	if r.Topic, r.First, err = schemas.ParseFrontTopic(topic); err != nil {
		return r, err
	}
	if err := CheckID(schemas.Documents{}, r.ID); err != nil {
		return r, fmt.Errorf("%w: %w", schemas.ErrRecord, err)
	}
	p := parser{h: h}
	if _, ok := h[schemas.HeaderStub]; ok {
		r.Stub = p.place(schemas.HeaderStub)
	}
	if _, ok := h[schemas.HeaderRefresh]; ok {
		r.Refresh = p.place(schemas.HeaderRefresh)
	}
	r.Version, r.Created, r.Changed = uint64(p.number(schemas.HeaderVersion)), p.number(schemas.HeaderKeyCreated), p.number(schemas.HeaderChanged)
	body := r.Op == schemas.OpStored || r.Op == schemas.OpUpdated
	switch {
	case p.err != nil:
		return r, fmt.Errorf("%w: %w", schemas.ErrRecord, p.err)
	case !body && !r.Removed():
		return r, fmt.Errorf("%w: %s is %q, it must be %s, %s or %s", schemas.ErrRecord, schemas.HeaderOp, r.Op, schemas.OpStored, schemas.OpUpdated, schemas.OpRemoved)
	case r.Version < 1 || r.Version > 1<<53 || r.Created < 1 || r.Changed < r.Created:
		return r, fmt.Errorf("%w: version %d, created %d, changed %d", schemas.ErrRecord, r.Version, r.Created, r.Changed)
	case r.Stub != nil && size > 0, r.Stub == nil && body != (size > 0):
		return r, fmt.Errorf("%w: %s with a body of %d bytes", schemas.ErrRecord, r.Op, size)
	case len(data) > 0 && !json.Valid(data):
		return r, fmt.Errorf("%w: the body is not JSON", schemas.ErrRecord)
	}
	if err := CheckPath(r.Path); err != nil {
		return r, fmt.Errorf("%w: %w", schemas.ErrRecord, err)
	}
	return r, nil
}

type parser struct {
	h   nats.Header
	err error
}

func (p *parser) number(name string) int64 {
	n, err := strconv.ParseInt(p.h.Get(name), 10, 64)
	if err != nil {
		p.err = errors.Join(p.err, fmt.Errorf("%s is %q, it must be a number", name, p.h.Get(name)))
	}
	return n
}

func (p *parser) place(name string) *schemas.FrontPlace {
	at, err := schemas.ParseFrontPlace(p.h.Get(name))
	p.err = errors.Join(p.err, err)
	return &at
}

// RowEvent is Event with the sequence of the row: a refresh has the row of what it was.
func (r *Record) RowEvent(t *schemas.Topic) schemas.Event {
	as := *r
	as.Seq = r.RowSeq()
	return as.Event(t)
}

// Event returns the change as the event of its row: the topic's own promoted fields are
// taken from the body's keys of their names.
func (r *Record) Event(t *schemas.Topic) schemas.Event {
	e := schemas.Event{
		Time: time.Unix(0, r.Changed), UserID: r.User,
		Attrs: []schemas.Attr{
			schemas.String(kinds.ColDocID, r.ID), schemas.String(kinds.ColPath, r.Path),
			schemas.Time(kinds.ColCreated, time.Unix(0, r.Created)), schemas.Int64(kinds.ColVersion, int64(r.Version)),
			schemas.String(kinds.ColOp, r.Op), schemas.String(kinds.ColBy, r.By), schemas.String(kinds.ColBody, string(r.Body)),
			schemas.Int64(kinds.ColSeq, int64(r.Seq)),
		},
	}
	own := len(t.Spec().Fields)
	if len(t.Fields) <= own || len(r.Body) == 0 {
		return e
	}
	var top map[string]json.RawMessage
	if json.Unmarshal(r.Body, &top) != nil {
		return e
	}
	for _, f := range t.Fields[own:] {
		raw, ok := top[f.Name]
		if !ok && f.From != "" {
			raw, ok = top[f.From]
		}
		if ok {
			e.Attrs = append(e.Attrs, promoted(f.Name, raw)...)
		}
	}
	return e
}

// promoted is the value of a promoted field; none where it is not a scalar.
func promoted(name string, raw json.RawMessage) []schemas.Attr {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil
	}
	switch v := v.(type) {
	case string:
		return []schemas.Attr{schemas.String(name, v)}
	case bool:
		return []schemas.Attr{schemas.Bool(name, v)}
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return []schemas.Attr{schemas.Int64(name, n)}
		}
		if f, err := v.Float64(); err == nil {
			return []schemas.Attr{schemas.Float64(name, f)}
		}
	}
	return nil
}
