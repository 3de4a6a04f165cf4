package timer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// Message returns the record's headers and body.
func (r *Record) Message() (nats.Header, []byte, error) {
	h := nats.Header{}
	text := func(name, value string) {
		if value != "" {
			h.Set(name, value)
		}
	}
	number := func(name string, value int64) {
		if value != 0 {
			h.Set(name, strconv.FormatInt(value, 10))
		}
	}
	text(schemas.HeaderOp, string(r.Op))
	number(schemas.HeaderChanged, r.Changed)
	number(schemas.HeaderKeyCreated, r.CreatedAt)
	text(schemas.HeaderLife, r.Life.String())
	number(schemas.HeaderRevision, r.Revision)
	number(schemas.HeaderAttempt, r.Attempt)
	number(schemas.HeaderDue, r.Due)
	number(schemas.HeaderFirst, r.First)
	text(schemas.HeaderOwner, r.Owner)
	text(schemas.HeaderClaim, r.Claim)
	text(schemas.HeaderHost, r.Host)
	text(schemas.HeaderUser, r.User)
	number(schemas.HeaderCallStatus, int64(r.Call.Status))
	text(schemas.HeaderCallError, r.Call.Error)
	text(schemas.HeaderCallDetail, oneLine(r.Call.Detail))
	number(schemas.HeaderCallTook, r.Call.Took.Microseconds())
	number(schemas.HeaderLate, r.Call.Late.Microseconds())
	if r.SpecSeq != 0 {
		h.Set(schemas.HeaderSpecSeq, strconv.FormatUint(r.SpecSeq, 10))
		return h, nil, nil
	}
	body, err := json.Marshal(r.Spec)
	return h, body, err
}

// Parse reads a record from a message of TIMERS. data is nil where only headers were read: the record
// then has no spec.
func Parse(subject string, seq uint64, h nats.Header, data []byte) (Record, error) {
	key, err := schemas.ParseTimerSubject(subject)
	if err != nil {
		return Record{}, fmt.Errorf("%w: %w", schemas.ErrRecord, err)
	}
	p := parser{h: h}
	r := Record{
		Key: key, Seq: seq, Op: Op(h.Get(schemas.HeaderOp)),
		Changed: p.number(schemas.HeaderChanged), CreatedAt: p.number(schemas.HeaderKeyCreated),
		Revision: p.number(schemas.HeaderRevision), Attempt: p.number(schemas.HeaderAttempt),
		Due: p.number(schemas.HeaderDue), First: p.number(schemas.HeaderFirst),
		Owner: h.Get(schemas.HeaderOwner), Claim: h.Get(schemas.HeaderClaim),
		SpecSeq: uint64(p.number(schemas.HeaderSpecSeq)), Host: h.Get(schemas.HeaderHost), User: h.Get(schemas.HeaderUser),
		Call: Call{
			Status: int(p.number(schemas.HeaderCallStatus)), Error: h.Get(schemas.HeaderCallError), Detail: h.Get(schemas.HeaderCallDetail),
			Took: time.Duration(p.number(schemas.HeaderCallTook)) * time.Microsecond,
			Late: time.Duration(p.number(schemas.HeaderLate)) * time.Microsecond,
		},
	}
	if r.State() == "" {
		return r, fmt.Errorf("%w: %s says %q", schemas.ErrRecord, schemas.HeaderOp, r.Op)
	}
	if r.Life, err = schemas.ParseID(h.Get(schemas.HeaderLife)); err != nil {
		p.err = errors.Join(p.err, err)
	}
	if p.err != nil {
		return r, fmt.Errorf("%w: %w", schemas.ErrRecord, p.err)
	}
	if r.Revision < 1 || r.Due <= 0 || r.Changed <= 0 || r.SpecSeq > math.MaxInt64 {
		return r, fmt.Errorf("%w: revision %d, due %d, changed %d, spec %s", schemas.ErrRecord, r.Revision, r.Due, r.Changed, h.Get(schemas.HeaderSpecSeq))
	}
	if r.SpecSeq == 0 && data != nil {
		r.Spec = &Spec{}
		if err := json.Unmarshal(data, r.Spec); err != nil {
			return r, fmt.Errorf("%w: its spec: %w", schemas.ErrRecord, err)
		}
	}
	return r, nil
}

type parser struct {
	h   nats.Header
	err error
}

// number reads a header, 0 where it is absent.
func (p *parser) number(name string) int64 {
	text := p.h.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		p.err = errors.Join(p.err, fmt.Errorf("%s: %q", name, text))
	}
	return n
}

// oneLine makes a text fit a header, which ends at a line break.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
