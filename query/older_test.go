package query

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// A field that is promoted has the values of events from before, wherever they are and by any
// reader: on their way, stored before the column was there and after, and merged.
func TestFieldsOfOlderEvents(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	db, err := tables.Open(srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r := &Reader{db: db}
	topic := evaluatedTopic()
	before := topic
	before.Fields, before.Version = topic.FieldsAt(1), 1
	b := frame.NewBuilder(&before)
	want := map[string]string{} // the values that an event of the newest version has
	for n, text := range olderTexts {
		e := schemas.Event{Message: text, Time: evaluatedNow}
		for i := range topic.Fields[len(before.Fields):] {
			f := &topic.Fields[len(before.Fields)+i]
			name := f.Name
			if f.From != "" && n%2 == 1 {
				name = f.From
			}
			e.Attrs = append(e.Attrs, schemas.String(name, text))
		}
		b.Append(&e, evaluatedNow.UnixNano(), schemas.DerivedID(evaluatedNow.UnixNano(), 1, uint64(n)))
		newest := frame.NewBuilder(&topic)
		newest.Append(&e, evaluatedNow.UnixNano(), schemas.DerivedID(evaluatedNow.UnixNano(), 1, uint64(n)))
		_, payload := newest.Encode()
		var open frame.Reader
		if err := open.Open(payload, &topic, 2); err != nil {
			t.Fatal(err)
		}
		w := frame.NewLineWriter(&topic)
		w.Open(&open, 2, 202611, 0)
		want[text] = fieldsOfLine(string(w.Append(nil, 0, 0)))
	}
	_, payload := b.Encode()
	payload = bytes.Clone(payload)
	var open frame.Reader
	if err := open.Open(payload, &topic, 1); err != nil {
		t.Fatal(err)
	}
	w := frame.NewLineWriter(&topic)
	w.Open(&open, 1, 202611, 0)
	lines := map[string]string{}
	for i, text := range olderTexts {
		lines[text] = fieldsOfLine(string(w.Append(nil, i, 0)))
	}
	// A text does not say how it was given, so that some are read as numbers which would be misfits today, and some the other way.
	for _, text := range olderTexts {
		if diff := cmp.Diff(want[text], lines[text]); diff != "" && !slices.Contains([]string{"+5", "007", ".5", "5.", "1e+06", "1e6", "1e2", "1.0", "-0", "1e400"}, text) {
			t.Errorf("%q: an older event differs from a newer one (-new +old): %s", text, diff)
		}
	}
	read := func(where, from string, fresh [][]byte) {
		t.Helper()
		got := map[string]string{}
		s := &tables.Select{SQL: fmt.Sprintf("SELECT message, %s FROM %s FORMAT JSONEachRow", columns(&topic), from), Settings: readSettings, Fresh: fresh, FreshStructure: topic.FrameStructure(1)}
		if err := r.lines(t.Context(), s, func(line []byte) error {
			var n int
			for n = range olderTexts {
				if strings.Contains(string(line), `"`+schemas.DerivedID(evaluatedNow.UnixNano(), 1, uint64(n)).String()+`"`) {
					break
				}
			}
			got[olderTexts[n]] = fieldsOfLine(string(line))
			return nil
		}); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if diff := cmp.Diff(lines, got); diff != "" {
			t.Errorf("%s (-own +ClickHouse): %s", where, diff)
		}
	}
	read("on the way", "("+tables.FreshSource(&topic, 1, 0, 0)+")", [][]byte{open.Raw()})
	if err := db.Ensure(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	insert := func(shard schemas.Shard) {
		t.Helper()
		in := &tables.Insert{Topic: &topic, Schema: 1, Month: 202611, Shard: shard, Frames: []tables.Frame{{Pos: 1, Rows: len(olderTexts), Payload: payload}}}
		if err := db.Insert(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	insert(1)
	if err := db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	table := sql.QuotedTable(db.Database, topic.Name)
	read("stored before the column", table+" WHERE shard = 1", nil)
	insert(2)
	read("stored after the column", table+" WHERE shard = 2", nil)
	if err := db.Conn().Exec(t.Context(), "OPTIMIZE TABLE "+table+" FINAL"); err != nil {
		t.Fatal(err)
	}
	read("merged", table+" WHERE shard = 1", nil)
}

// fieldsOfLine are the promoted fields of an event's line.
func fieldsOfLine(line string) string {
	fields, _, _ := strings.Cut(line[strings.LastIndex(line, `"region":`):], `,"month":`)
	return fields
}

// A document has a field that was promoted since in its body.
func TestFieldsOfOlderDocuments(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	db, err := tables.Open(srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	topic := schemas.NewTopicOf(kinds.Document, "customers")
	before := topic
	want := topic
	want.Fields = append(slices.Clone(want.Fields), schemas.Field{Name: "status", Type: schemas.TypeString}, schemas.Field{Name: "n", Type: schemas.TypeInt64, From: "count"}, schemas.Field{Name: "ok", Type: schemas.TypeBool})
	if topic, err = topic.Evolve(want); err != nil {
		t.Fatal(err)
	}
	bodies := []string{`{"status":"active","n":5,"ok":true}`, `{"status":7,"count":"6"}`, `{"status":null,"n":{"x":1},"ok":"false"}`, `{"n":9007199254740993}`, `{"status":"it's \"\u00e9\"","ok":[1]}`}
	older, newer := frame.NewBuilder(&before), frame.NewBuilder(&topic)
	for i, body := range bodies {
		r := document.Record{Topic: "customers", ID: fmt.Sprint("d-", i), Op: schemas.OpStored, Version: 1, Created: 1, Changed: evaluatedNow.UnixNano(), Seq: uint64(i + 1), Body: []byte(body)}
		for b, t := range map[*frame.Builder]*schemas.Topic{older: &before, newer: &topic} {
			e := r.Event(t)
			b.Append(&e, r.Changed, schemas.SequenceID(r.Changed, r.Seq, 0))
		}
	}
	linesOf := func(b *frame.Builder, version int) (lines []string, raw []byte, payload []byte) {
		t.Helper()
		_, payload = b.Encode()
		var open frame.Reader
		if err := open.Open(payload, &topic, version); err != nil {
			t.Fatal(err)
		}
		w := frame.NewLineWriter(&topic)
		w.Open(&open, version, 202611, 1)
		for i := range bodies {
			lines = append(lines, strings.TrimSpace(string(w.Append(nil, i, 1))))
		}
		return lines, bytes.Clone(open.Raw()), bytes.Clone(payload)
	}
	truth, _, _ := linesOf(newer, 2)
	own, raw, payload := linesOf(older, 1)
	if diff := cmp.Diff(truth, own); diff != "" {
		t.Errorf("read without ClickHouse: %s", diff)
	}
	r := &Reader{db: db}
	read := func(where, from string, fresh [][]byte) {
		t.Helper()
		var got []string
		s := &tables.Select{SQL: fmt.Sprintf("SELECT %s FROM %s ORDER BY seq FORMAT JSONEachRow", columns(&topic), from), Settings: readSettings, Fresh: fresh, FreshStructure: topic.FrameStructure(1)}
		if err := r.lines(t.Context(), s, func(line []byte) error { got = append(got, string(line)); return nil }); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if diff := cmp.Diff(truth, got); diff != "" {
			t.Errorf("%s: %s", where, diff)
		}
	}
	read("on the way", "("+tables.FreshSource(&topic, 1, 1, 1)+")", [][]byte{raw})
	if err := db.Ensure(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	if err := db.Insert(t.Context(), &tables.Insert{Topic: &topic, Schema: 1, Month: 202611, Shard: 1, Frames: []tables.Frame{{Pos: 1, Rows: len(bodies), Payload: payload}}}); err != nil {
		t.Fatal(err)
	}
	if err := db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	read("stored", sql.QuotedTable(db.Database, topic.Name), nil)
}
