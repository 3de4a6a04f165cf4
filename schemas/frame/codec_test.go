package frame

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/ClickHouse/ch-go/proto"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var codecTopic = func() schemas.Topic {
	t := schemas.NewTopic("auth",
		schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality},
		schemas.Field{Name: "note", Type: schemas.TypeString},
		schemas.Field{Name: "n", Type: schemas.TypeInt64},
		schemas.Field{Name: "duration_ms", Type: schemas.TypeFloat64},
		schemas.Field{Name: "ok", Type: schemas.TypeBool},
		schemas.Field{Name: "seen", Type: schemas.TypeTimestamp},
	)
	return t
}()

func codecEvents() []schemas.Event {
	at := time.Date(2026, 11, 20, 12, 0, 0, 123456789, time.UTC)
	return []schemas.Event{
		{Time: at, ID: schemas.ID{1, 2, 3, 15: 9}, Level: "info", Service: "api", Type: "login", UserID: "u-7", TraceID: "abc", SpanID: "d", Message: "hello",
			Attrs: []schemas.Attr{schemas.String("endpoint", "/a"), schemas.Int64("n", -5), schemas.Float64("duration_ms", 1.5), schemas.Bool("ok", true), schemas.Time("seen", at), schemas.String("note", "x"), schemas.String("ip", "10.0.0.1")}},
		{Time: at.Add(-time.Hour), ID: schemas.ID{1, 15: 1}},
		{Time: at.Add(time.Hour), ID: schemas.ID{2}, Message: "bad \xed\xb9\xa4 utf8", Attrs: []schemas.Attr{schemas.String("n", "not a number"), schemas.Int64("extra", 9)}},
	}
}

func buildFrame(t testing.TB, topic *schemas.Topic, events []schemas.Event) (schemas.Frame, []byte) {
	t.Helper()
	b := NewBuilder(topic)
	for i := range events {
		b.Append(&events[i], events[i].Time.UnixNano(), events[i].ID)
	}
	f, payload := b.Encode()
	return f, bytes.Clone(payload)
}

func TestFrameRoundTrip(t *testing.T) {
	events := codecEvents()
	f, payload := buildFrame(t, &codecTopic, events)
	var r Reader
	if err := r.Open(payload, &codecTopic, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(f, 202611, 0, time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC).UnixNano()); err != nil {
		t.Fatal(err)
	}
	want := codecEvents()
	// Promoted fields first, in column order; what does not fit stays text; invalid UTF-8 is marked.
	want[0].Attrs = []schemas.Attr{schemas.String("endpoint", "/a"), schemas.String("note", "x"), schemas.Int64("n", -5), schemas.Float64("duration_ms", 1.5), schemas.Bool("ok", true), schemas.Time("seen", want[0].Time), schemas.String("ip", "10.0.0.1")}
	want[2].Attrs = []schemas.Attr{schemas.String("n", "not a number"), schemas.String("extra", "9"), schemas.String(schemas.AttrInvalidUTF8, schemas.ColMessage)}
	for i := range want {
		if d := cmp.Diff(want[i], r.Event(i), cmp.AllowUnexported(schemas.Attr{})); d != "" {
			t.Errorf("event %d (-want +got):\n%s", i, d)
		}
	}
}

// The golden file is the wire format: a diff here breaks every frame that is
// already in a stream.
func TestFrameGolden(t *testing.T) {
	_, payload := buildFrame(t, &codecTopic, codecEvents())
	var r Reader
	if err := r.Open(payload, &codecTopic, 1); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "frame_v1.native")
	if *update {
		if err := os.WriteFile(path, r.Raw(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, r.Raw()) {
		t.Fatalf("the frame's bytes changed; if that is meant, it is a new schema version: go test -run Golden -update\n%s", cmp.Diff(want, r.Raw()))
	}
}

// ch-go reads what the builder wrote: a second opinion on the format.
func TestFrameReadByChGo(t *testing.T) {
	_, payload := buildFrame(t, &codecTopic, codecEvents())
	var (
		ts                   proto.ColDateTime64
		id                   proto.ColUUID
		user, tr, sp, msg, n proto.ColStr
		num                  proto.ColInt64
		dur                  proto.ColFloat64
		ok                   proto.ColBool
		seen                 proto.ColDateTime64
	)
	ts.WithPrecision(9)
	seen.WithPrecision(9)
	lc := func() *proto.ColLowCardinality[string] { return new(proto.ColStr).LowCardinality() }
	level, service, typ, endpoint := lc(), lc(), lc(), lc()
	attrs := proto.NewMap[string, string](lc(), new(proto.ColStr))
	res := proto.Results{
		{Name: schemas.ColTs, Data: &ts}, {Name: schemas.ColID, Data: &id}, {Name: schemas.ColLevel, Data: level}, {Name: schemas.ColService, Data: service},
		{Name: schemas.ColType, Data: typ}, {Name: schemas.ColUserID, Data: &user}, {Name: schemas.ColTraceID, Data: &tr}, {Name: schemas.ColSpanID, Data: &sp},
		{Name: schemas.ColMessage, Data: &msg}, {Name: schemas.ColAttributes, Data: attrs}, {Name: "endpoint", Data: endpoint}, {Name: "note", Data: &n},
		{Name: "n", Data: &num}, {Name: "duration_ms", Data: &dur}, {Name: "ok", Data: &ok}, {Name: "seen", Data: &seen},
	}
	var b proto.Block
	if err := b.DecodeRawBlock(proto.NewReader(compress.NewReader(bytes.NewReader(payload))), 0, res); err != nil {
		t.Fatal(err)
	}
	want := codecEvents()
	for i, e := range want {
		if got := ts.Row(i); !got.Equal(e.Time) {
			t.Errorf("ts %d = %s, want %s", i, got, e.Time)
		}
		if got := schemas.ID(id.Row(i)); got != e.ID {
			t.Errorf("id %d = %s, want %s", i, got, e.ID)
		}
		if got := msg.Row(i); got != e.Message {
			t.Errorf("message %d = %q, want %q", i, got, e.Message)
		}
		if got := level.Row(i); got != e.Level {
			t.Errorf("level %d = %q, want %q", i, got, e.Level)
		}
	}
	if d := cmp.Diff(map[string]string{"ip": "10.0.0.1"}, attrs.Row(0)); d != "" {
		t.Error(d)
	}
}

func TestFrameAnyEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringN(0, 40, 200)
		attr := rapid.Custom(func(rt *rapid.T) schemas.Attr {
			return schemas.String("k"+text.Draw(rt, "key"), text.Draw(rt, "value"))
		})
		event := rapid.Custom(func(rt *rapid.T) schemas.Event {
			return schemas.Event{
				Time: time.Unix(1_700_000_000+int64(rapid.IntRange(0, 1000).Draw(rt, "s")), 5).UTC(), ID: schemas.NewID(5),
				Level: text.Draw(rt, "level"), Service: text.Draw(rt, "service"), Type: text.Draw(rt, "type"), UserID: text.Draw(rt, "user"),
				Message: text.Draw(rt, "message"), Attrs: rapid.SliceOfNDistinct(attr, 0, 5, func(a schemas.Attr) string { return a.Key }).Draw(rt, "attrs"),
			}
		})
		events := rapid.SliceOfN(event, 1, 400).Draw(rt, "events")
		topic := schemas.NewTopic("app")
		f, payload := buildFrame(t, &topic, events)
		var r Reader
		if err := r.Open(payload, &topic, 1); err != nil {
			rt.Fatal(err)
		}
		if err := r.Check(f, 202311, 0, events[0].Time.UnixNano()+int64(schemas.MaxFuture)/2); err != nil {
			rt.Fatal(err)
		}
		for i := range events {
			if len(events[i].Attrs) == 0 {
				events[i].Attrs = nil
			}
			if d := cmp.Diff(events[i], r.Event(i), cmp.AllowUnexported(schemas.Attr{})); d != "" {
				rt.Fatalf("event %d (-want +got):\n%s", i, d)
			}
		}
	})
}

// Whatever bytes arrive, the reader answers with an error or a frame whose every
// event can be decoded.
func FuzzReader(f *testing.F) {
	topic := codecTopic
	b := NewBuilder(&topic)
	for _, e := range codecEvents() {
		b.Append(&e, e.Time.UnixNano(), e.ID)
	}
	var s scratch
	b.encodeRaw(&s)
	f.Add(s.raw)
	f.Add(s.raw[:40])
	f.Fuzz(func(t *testing.T, raw []byte) {
		// The checksum would stop nearly every mutation, so the block itself is mutated.
		var r Reader
		err := r.Open(appendCompressed(nil, raw), &topic, 1)
		if err != nil {
			if schemas.Reason(err) == "" {
				t.Fatalf("an error without a reason: %v", err)
			}
			return
		}
		for i := range r.Rows() {
			_ = r.Event(i)
		}
	})
}

func benchEvents() (schemas.Topic, []schemas.Event) {
	topic := schemas.NewTopic("app")
	events := make([]schemas.Event, schemas.FrameRows)
	for i := range events {
		events[i] = schemas.Event{Time: time.Unix(1_700_000_000, int64(i)), ID: schemas.NewID(int64(i)), Level: "info", Service: "api", Type: "login",
			UserID: "u-" + string(rune('a'+i%26)), Message: "user logged in from the office", Attrs: []schemas.Attr{schemas.String("ip", "10.0.0.1"), schemas.String("endpoint", "/login"), schemas.Int64("n", int64(i))}}
	}
	return topic, events
}

func BenchmarkFrameEncode(b *testing.B) {
	topic, events := benchEvents()
	fb := NewBuilder(&topic)
	var size int
	for b.Loop() {
		fb.Reset()
		for i := range events {
			fb.Append(&events[i], events[i].Time.UnixNano(), events[i].ID)
		}
		f, p := fb.Encode()
		size = len(p)
		_ = f
	}
	b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(size)/float64(len(events)), "wireB/event")
	b.ReportAllocs()
}

func BenchmarkFrameInspect(b *testing.B) {
	topic, events := benchEvents()
	f, payload := buildFrame(b, &topic, events)
	var r Reader
	for b.Loop() {
		if err := r.Open(payload, &topic, 1); err != nil {
			b.Fatal(err)
		}
		if err := r.Check(f, 202311, 0, f.MaxTs); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
	b.ReportAllocs()
}
