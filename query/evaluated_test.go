package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

var (
	evaluatedNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	// So few values that filters meet them, and what is hard to spell, order or print.
	someTexts = []string{
		"", "a", "A", "b", "ab", "ab\x00", "é", "e\u0301", "10", "9", "1e1", "true", "\\N", "NULL", `it's "so"`, "a\\b", "\t\n\r\x01\x1f\x7f",
		"\xff\xfea", "a\xc3", "\xed\xa0\x80", "\u2028\uFFFD", "<&>/", "\U0001F600", "%_", "\b\f",
	}
	someInts   = []int64{0, 1, -1, 7, math.MaxInt64, math.MinInt64}
	someFloats = []float64{
		0, math.Copysign(0, -1), 1, -1, 1.5, 7, 99999, 100000, 1e6, 1e15, 123456789012345680, 1e20, 1e21, 1e22, 1e-5, 1e-6, 1e-7, 0.1, 1. / 3,
		math.SmallestNonzeroFloat64, math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
	}
	someKeys = []string{"k", "any 'key'", "a.b", "k\xff", "n"}
)

// olderTexts are what events from before a field was promoted have under its name: values, and
// what is hard to read alike.
var olderTexts = []string{
	"", "0", "-0", "1", "-1", "+5", "007", "500", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "9007199254740993", "1e+06", "1e6", "5e-324", "1e400", "1.0", "1.5", "0.1",
	"0.30000000000000004", "123456789012345678.123456789012345678", "1.0000000000000000001", "1e2", ".5", "5.", "0x10", "NaN", "inf", "abc", " 1", "true", "false", "T", "yes", "null", `{"a":1}`, `[1`, `"x"`,
	"2026-11-20T12:00:00Z", "2026-11-20T12:00:00.123456789Z", "2026-11-20 12:00:00", "2026-11-20T12:00:00.5+02:00", "2026-11-20T12:00:00-0530", "2026-02-30T00:00:00Z", "2026-11-20", "1969-12-31T23:59:59.999Z",
	"1764064800", "1764064800.123", "1764064800123", "1764064800123.5", "1764064800123456", "1764064800123456789", "-1.5", "9214646400000000000", "2025-11-25T25:00:00Z", "2025-00-10T05:00:00Z", "2025-11-25T05:00:00+25:00", "2025-11-25T05:00:00+02:75",
}

// evaluatedTopic is one whose second schema version brought fields.
func evaluatedTopic() schemas.Topic {
	t := schemas.NewTopic("app", schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality}, schemas.Field{Name: "ms", Type: schemas.TypeFloat64})
	t.Version = 2
	for _, f := range []schemas.Field{
		{Name: "region", Type: schemas.TypeString}, {Name: "status", Type: schemas.TypeInt64}, {Name: "cached", Type: schemas.TypeBool}, {Name: "seen_at", Type: schemas.TypeTimestamp},
		{Name: "load", Type: schemas.TypeFloat64}, {Name: "zone", Type: schemas.TypeLowCardinality},
		{Name: "price", Type: schemas.TypeDecimal, From: "order.price"}, {Name: "detail", Type: schemas.TypeJSON}, {Name: "size", Type: schemas.TypeInt64, From: "file.size"},
	} {
		f.Since = 2
		t.Fields = append(t.Fields, f)
	}
	return t
}

func evaluatedEvent(t *rapid.T) schemas.Event {
	text := rapid.SampledFrom(someTexts)
	e := schemas.Event{
		Time:  evaluatedNow.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "ts"))),
		Level: text.Draw(t, "level"), Service: text.Draw(t, "service"), Type: text.Draw(t, "type"), UserID: text.Draw(t, "user"),
		TraceID: text.Draw(t, "trace"), SpanID: text.Draw(t, "span"), Message: text.Draw(t, "message"),
	}
	for range rapid.IntRange(0, 3).Draw(t, "attrs") {
		e.Attrs = append(e.Attrs, schemas.String(rapid.SampledFrom(someKeys).Draw(t, "key"), text.Draw(t, "value")))
	}
	if rapid.Bool().Draw(t, "older") {
		older := rapid.SampledFrom(olderTexts)
		for _, name := range rapid.SliceOfN(rapid.SampledFrom([]string{"status", "cached", "seen_at", "load", "price", "order.price", "detail", "size", "file.size"}), 1, 4).Draw(t, "names") {
			e.Attrs = append(e.Attrs, schemas.String(name, older.Draw(t, name)))
		}
		return e
	}
	if rapid.Bool().Draw(t, "promoted") {
		e.Attrs = append(e.Attrs, schemas.String("endpoint", text.Draw(t, "endpoint")), schemas.String("region", text.Draw(t, "region")),
			schemas.Float64("ms", rapid.OneOf(rapid.SampledFrom(someFloats), rapid.Float64()).Draw(t, "ms")), schemas.Int64("status", rapid.SampledFrom(someInts).Draw(t, "status")),
			schemas.Bool("cached", rapid.Bool().Draw(t, "cached")), schemas.Time("seen_at", evaluatedNow.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "seen")))),
			schemas.String("ms", "no number"))
	}
	return e
}

func evaluatedFrame(t *rapid.T, topic *schemas.Topic, nth int) recent.Frame {
	at := *topic
	at.Version = rapid.IntRange(1, 2).Draw(t, "version")
	at.Fields = topic.FieldsAt(at.Version)
	b := frame.NewBuilder(&at)
	for i := range rapid.IntRange(1, 6).Draw(t, "rows") {
		e := evaluatedEvent(t)
		b.Append(&e, e.Time.UnixNano(), schemas.DerivedID(e.Time.UnixNano(), uint64(nth), uint64(i)))
	}
	f, payload := b.Encode()
	return recent.Frame{Frame: f, Payload: bytes.Clone(payload), Subject: schemas.EventsSubject("app", 202611, 0), StoredNs: evaluatedNow.UnixNano(), Source: schemas.Source{Seq: uint64(nth + 1)}}
}

// quoted spells a text as a filter has it.
func quoted(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\x00", `\0`).Replace(s) + "'"
}

func evaluatedFilter(t *rapid.T, depth int) string {
	if depth > 0 {
		left := evaluatedFilter(t, depth-1)
		switch rapid.IntRange(0, 3).Draw(t, "shape") {
		case 0:
			return "(" + left + " AND " + evaluatedFilter(t, depth-1) + ")"
		case 1:
			return "(" + left + " OR " + evaluatedFilter(t, depth-1) + ")"
		case 2:
			return "NOT (" + left + ")"
		}
		return left
	}
	text := quoted(rapid.SampledFrom(someTexts).Draw(t, "text"))
	other := quoted(rapid.SampledFrom(someTexts).Draw(t, "other"))
	order := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "order")
	equal := rapid.SampledFrom([]string{"=", "!="}).Draw(t, "equal")
	in := rapid.SampledFrom([]string{" IN ", " NOT IN "}).Draw(t, "in")
	column := rapid.SampledFrom([]string{"level", "service", "type", "user_id", "trace_id", "span_id", "message", "endpoint", "region", "zone"}).Draw(t, "column")
	attr := "attributes[" + quoted(rapid.SampledFrom(someKeys).Draw(t, "key")) + "]"
	whole := fmt.Sprint(rapid.SampledFrom(someInts).Draw(t, "whole"))
	number := rapid.SampledFrom([]string{"0", "-0", "+1", "1.5", "7", "1e0", "99999", "100000", "1e6", "1e21", "0.1", "-1", "1e-7"}).Draw(t, "number")
	at := func(name string, around int) string {
		if rapid.IntRange(0, 9).Draw(t, "far") == 0 {
			return rapid.SampledFrom([]string{"'1970-01-01'", "'1969-12-31T23:59:59.5Z'", "'2261-12-31'", "'1901-02-03T04:05:06.000000007Z'"}).Draw(t, name)
		}
		return "'" + evaluatedNow.Add(time.Duration(rapid.IntRange(-around, around).Draw(t, name))).Format(time.RFC3339Nano) + "'"
	}
	return rapid.SampledFrom([]string{
		column + " " + order + " " + text, column + in + "(" + text + ", " + other + ")", column + " contains " + text, "exists " + column, column + " = " + text,
		column + " matches '^a|[0-9]'", attr + " " + order + " " + text, attr + in + "(" + text + ", 10)", attr + " contains " + text, attr + " " + order + " " + number, "exists " + attr,
		"ms " + order + " " + number, "load " + order + " " + number, "ms" + in + "(" + number + ", 7)", "status " + order + " " + whole, "status" + in + "(" + whole + ", 7)",
		"size " + order + " " + whole, "size " + order + " 500", "file.size = 500", "status = 9007199254740993", "seen_at >= '1970-01-02'", "load = 0.1", "detail contains '1'",
		"cached " + equal + " true", "cached" + in + "(false)", "ts " + order + " " + at("ts", 3), "ts" + in + "(" + at("one", 3) + ", " + at("two", 3) + ")",
		"seen_at " + order + " " + at("seen", 2), "seen_at" + in + "(" + at("seen", 2) + ")", "month " + order + " '2026-11'", "month" + in + "('2026-11', '2026-10')",
		"shard " + equal + " '0000000000000000'", "shard" + in + "('00000000000000ab')", "pos " + order + " 0", "pos" + in + "(0, 1)",
		"id " + equal + " '" + schemas.DerivedID(evaluatedNow.UnixNano(), 0, 0).String() + "'", "id" + in + "('" + schemas.DerivedID(evaluatedNow.UnixNano(), 1, 1).String() + "')",
	}).Draw(t, "leaf")
}

// What a page takes from fresh frames without ClickHouse is, byte for byte, what
// ClickHouse says of the same frames: which events match, their order, their JSON.
func TestEvaluatedAsByClickHouse(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	db, err := tables.Open(srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	r := &Reader{db: db}
	topic := evaluatedTopic()
	told := 0
	rapid.Check(t, func(t *rapid.T) {
		p := &plan{topic: topic, snapshot: &recent.Snapshot{}, limit: rapid.SampledFrom([]int{1, 3, 500}).Draw(t, "limit"), asc: rapid.Bool().Draw(t, "asc")}
		lo, hi := rapid.Int64Range(-4, 4).Draw(t, "from"), rapid.Int64Range(-4, 4).Draw(t, "to")
		p.from, p.to = evaluatedNow.UnixNano()+min(lo, hi), evaluatedNow.UnixNano()+max(lo, hi)
		if rapid.Bool().Draw(t, "cursor") {
			at := evaluatedNow.UnixNano() + rapid.Int64Range(-3, 3).Draw(t, "after")
			p.after = position{at, schemas.DerivedID(at, 0, 0), rapid.Bool().Draw(t, "edge")}
		}
		src := ""
		if rapid.IntRange(0, 9).Draw(t, "all") > 0 {
			src = evaluatedFilter(t, rapid.IntRange(0, 2).Draw(t, "depth"))
		}
		var err error
		if p.where, err = filter.ParseAt(src, &p.topic, evaluatedNow); err != nil {
			t.Fatal(err)
		}
		frames := make([]recent.Frame, rapid.IntRange(1, 4).Draw(t, "frames"))
		for i := range frames {
			frames[i] = evaluatedFrame(t, &p.topic, i)
		}
		var want []row
		for rest, seen := frames, map[string]bool{}; len(rest) > 0; {
			c := freshChunk(p, rest, seen, func(*recent.Frame, *frame.Reader) bool { return true })
			if c.frames == 0 || len(c.blocks) != c.frames {
				t.Fatalf("%d of %d frames opened", len(c.blocks), c.frames)
			}
			rows, err := r.askFresh(t.Context(), p, &c, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			want, rest = merge(want, rows, p), rest[c.frames:]
		}
		got, err := r.freshRows(t.Context(), p, frames, map[string]bool{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(lines(want), lines(got)); diff != "" {
			t.Fatalf("%s\n(-ClickHouse +here) %s", p.where, diff)
		}
		own := evaluated{p: p}
		chunk := freshChunk(p, frames[:1], map[string]bool{}, func(f *recent.Frame, r *frame.Reader) bool { return own.take(f, r, true) })
		if len(chunk.blocks) == 0 && len(own.rows) > 0 {
			told++
		}
	})
	if told == 0 {
		t.Error("every frame with a match went to ClickHouse")
	}
}

func lines(rows []row) []string {
	out := make([]string, len(rows))
	for i, r := range rows {
		out[i] = fmt.Sprint(r.ts, " ", r.id, " ", string(r.json))
	}
	return out
}

// What a tail makes of a routed frame without ClickHouse is, byte for byte and row for row, what ClickHouse says of it, also
// from the midst of the frame on.
func TestTailAsByClickHouse(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	db, err := tables.Open(srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	sure := 0
	rapid.Check(t, func(t *rapid.T) {
		topic := evaluatedTopic()
		src := ""
		if rapid.IntRange(0, 9).Draw(t, "all") > 0 {
			src = evaluatedFilter(t, rapid.IntRange(0, 2).Draw(t, "depth"))
		}
		where, err := filter.ParseAt(src, &topic, evaluatedNow)
		if err != nil {
			t.Fatal(err)
		}
		f := evaluatedFrame(t, &topic, 0)
		at := place{rapid.SampledFrom([]schemas.Shard{0, 1, 0xab, math.MaxUint64}).Draw(t, "shard"), rapid.SampledFrom([]uint64{0, 1, 2, 7}).Draw(t, "pos"), f.Schema}
		var reader frame.Reader
		if err := reader.Open(f.Payload, &topic, f.Schema); err != nil {
			t.Fatal(err)
		}
		began := tailPos{seq: 7, row: rapid.IntRange(0, reader.Rows()).Draw(t, "row"), stored: evaluatedNow.UnixNano()}
		var got []string
		tail := func() *tailing {
			got = nil
			return &tailing{r: &Reader{db: db}, topic: topic, where: where, at: began, f: func(pos string, event json.RawMessage) error {
				got = append(got, pos+" "+string(event))
				return nil
			}}
		}
		here := tail()
		ok, err := here.evaluate(&reader, at)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			if len(got) > 0 {
				t.Fatalf("not sure, and yet it gave %q", got)
			}
			return
		}
		sure++
		own := got
		asked := tail()
		if err := asked.ask(t.Context(), &reader, at, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, own); diff != "" || here.at != asked.at {
			t.Fatalf("%s at %v: %v, want %v\n(-ClickHouse +here) %s", where, at, here.at, asked.at, diff)
		}
	})
	if sure == 0 {
		t.Error("every frame went to ClickHouse")
	}
}
