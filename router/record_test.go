package router

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
)

var (
	customers = schemas.NewTopicOf(kinds.Document, "customers", schemas.Field{Name: "status", Type: schemas.TypeLowCardinality})
	inMonth   = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano()
)

// recordOf is a version of a document as the lane reads it.
func recordOf(seq uint64, changed int64, body string) message {
	r := document.Record{Topic: "customers", ID: fmt.Sprint("c-", seq), Path: "se", Op: schemas.OpStored, Version: 1, Created: changed, Changed: changed, User: "u-1", Body: []byte(body)}
	r.Lane = fmt.Sprint(document.Lane(&customers, r.ID))
	return message{subject: r.Subject(), header: r.Header(), data: r.Body, seq: seq, stored: time.Unix(0, changed)}
}

func stubOf(seq uint64) message {
	m := recordOf(seq, inMonth, "")
	m.data = nil
	m.header.Set(schemas.HeaderStub, schemas.FrontPlace{Month: 202611, Shard: 7, Seq: 1}.String())
	return m
}

// Consecutive records of a month become one frame; stubs and refreshes only move the
// checkpoint; what is not a record is a run of its own.
func TestRuns(t *testing.T) {
	t.Parallel()
	some := func(n int, body string) (out []message) {
		for i := range n {
			out = append(out, recordOf(uint64(i+1), inMonth+int64(i), body))
		}
		return out
	}
	next := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	refresh := recordOf(2, inMonth, `{}`)
	refresh.header.Set(schemas.HeaderRefresh, schemas.FrontPlace{Month: 202611, Shard: 7, Seq: 1}.String())
	elsewhere := recordOf(2, inMonth, `{}`)
	elsewhere.subject = schemas.DocSubject("customers", 9, "c-2")
	for name, c := range map[string]struct {
		msgs        []message
		n, rows     int
		first, last uint64
		dead        error
	}{
		"one":                        {some(1, `{"status":"new"}`), 1, 1, 1, 1, nil},
		"many":                       {some(3000, `{}`), runRows, runRows, 1, runRows, nil},
		"large":                      {some(10, `{"a":"`+strings.Repeat("x", 100<<10)+`"}`), 4, 4, 1, 4, nil},
		"months":                     {[]message{recordOf(1, next-1, `{}`), recordOf(2, next, `{}`)}, 1, 1, 1, 1, nil},
		"stubs between":              {[]message{stubOf(1), recordOf(2, inMonth, `{}`), stubOf(3), recordOf(4, inMonth+1, `{}`), stubOf(5)}, 5, 2, 2, 4, nil},
		"refresh":                    {[]message{refresh}, 1, 0, 0, 0, nil},
		"settled between":            {[]message{recordOf(1, inMonth, `{}`), func() message { m := recordOf(2, inMonth, `{}`); m.isStored = true; return m }(), recordOf(3, inMonth, `{}`)}, 3, 2, 1, 3, nil},
		"stubs alone":                {[]message{stubOf(1), stubOf(2)}, 2, 0, 0, 0, nil},
		"stray first":                {[]message{{subject: "docs.customers.0.x", header: nats.Header{}, data: []byte("x"), seq: 1, stored: time.Unix(0, inMonth)}, recordOf(2, inMonth, `{}`)}, 1, 0, 0, 0, schemas.ErrRecord},
		"stray second":               {[]message{recordOf(1, inMonth, `{}`), {subject: "docs.customers.0.x", header: nats.Header{}, data: []byte("x"), seq: 2}}, 1, 1, 1, 1, nil},
		"stray that nothing finds":   {[]message{{subject: "docs.customers.0.\x7f", header: nats.Header{}, data: []byte("x"), seq: 1}, recordOf(2, inMonth, `{}`)}, 2, 1, 2, 2, nil},
		"another lane":               {[]message{elsewhere}, 1, 0, 0, 0, schemas.ErrRecord},
		"a stub with a payload":      {[]message{func() message { m := stubOf(1); m.data = []byte("{}"); return m }()}, 1, 0, 0, 0, schemas.ErrRecord},
		"of the future":              {[]message{func() message { m := recordOf(1, next, `{}`); m.stored = time.Unix(0, inMonth); return m }()}, 1, 1, 1, 1, nil},
		"larger than a document may": {[]message{recordOf(1, inMonth, `{"a":"`+strings.Repeat("x", schemas.MaxDocumentBytes)+`"}`)}, 1, 0, 0, 0, schemas.ErrRecord},
	} {
		t.Run(name, func(t *testing.T) {
			j := evaluator{topic: &customers}
			out, n := j.run(c.msgs, 0)
			if n != c.n {
				t.Errorf("%d messages, expected %d", n, c.n)
			}
			rows := 0
			for _, f := range out.frames {
				rows += f.Rows
				if len(f.payload) > schemas.MaxFrameBytes {
					t.Errorf("a frame of %d bytes", len(f.payload))
				}
				if err := new(frame.Reader).Open(f.payload, &customers, f.Schema); err != nil {
					t.Error(err)
				}
			}
			last := uint64(0)
			if out.last != nil {
				last = out.last.seq
			}
			if rows != c.rows || len(out.frames) > 1 || out.first != c.first || last != c.last {
				t.Errorf("%d rows in %d frames, %d to %d; expected %d, %d to %d", rows, len(out.frames), out.first, last, c.rows, c.first, c.last)
			}
			if c.dead == nil != (len(out.dead) == 0) || c.dead != nil && !errors.Is(out.dead[0].err, c.dead) {
				t.Errorf("dead letters %v, expected %v", out.dead, c.dead)
			}
		})
	}
}

// A run that is made again has the same ids.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	j := evaluator{topic: &customers}
	msgs := []message{recordOf(1, inMonth, `{"status":"new"}`), recordOf(2, inMonth, `{"status":"old"}`)}
	a, _ := j.run(msgs, 0)
	b, _ := j.run(msgs, 0)
	if !bytes.Equal(a.frames[0].payload, b.frames[0].payload) || a.frames[0].ids != b.frames[0].ids {
		t.Error("the same run gave another frame")
	}
	one, _ := j.run(msgs[1:], 0)
	r := &frame.Reader{}
	if err := r.Open(one.frames[0].payload, &customers, 1); err != nil {
		t.Fatal(err)
	}
	if id := r.ID(0); id != schemas.SequenceID(inMonth, 2, 0) {
		t.Errorf("id %s", id)
	}
}

// A document that comes when its month is past the topic's retention has its row: its record in DOCS leaves
// with the row alone, and a dead letter would keep the id taken for good.
func TestRecordPastRetention(t *testing.T) {
	t.Parallel()
	topic := customers
	topic.KeepDays = 30
	m := recordOf(1, inMonth, `{}`)
	m.stored = time.Unix(0, inMonth).AddDate(1, 0, 0)
	j := evaluator{topic: &topic}
	if got, _ := j.run([]message{m}, 0); len(got.dead) != 0 || len(got.frames) != 1 || got.month != schemas.MonthOf(inMonth) {
		t.Errorf("%+v", got)
	}
}
