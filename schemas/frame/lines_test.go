package frame_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

func openFrame(t testing.TB, topic *schemas.Topic, events ...schemas.Event) (*frame.Reader, []byte) {
	t.Helper()
	b := frame.NewBuilder(topic)
	for i := range events {
		b.Append(&events[i], events[i].Time.UnixNano(), schemas.DerivedID(events[i].Time.UnixNano(), uint64(i), 1))
	}
	_, payload := b.Encode()
	r := &frame.Reader{}
	if err := r.Open(payload, topic, topic.Version); err != nil {
		t.Fatal(err)
	}
	return r, payload
}

func TestLineWriter(t *testing.T) {
	topic := schemas.NewTopic("app", schemas.Field{Name: "ms", Type: schemas.TypeFloat64}, schemas.Field{Name: "at", Type: schemas.TypeTimestamp})
	at := time.Date(2026, 11, 21, 3, 42, 42, 803062906, time.UTC)
	r, _ := openFrame(t, &topic, schemas.Event{
		Time: at, Level: "info", UserID: "u\"7", Message: "a\\b\x01\xff\xffc\u2028",
		Attrs: []schemas.Attr{schemas.Float64("ms", 1.5e-9), schemas.Time("at", at), schemas.String("k\n", "é")},
	}, schemas.Event{Time: at.Add(time.Second)})
	w := frame.NewLineWriter(&topic)
	w.Open(r, 1, schemas.MonthOf(at.UnixNano()), 0xab)
	want := `{"ts":"2026-11-21T03:42:42.803062906Z","id":"` + r.ID(0).String() + `","level":"info","service":"","type":"","user_id":"u\"7","trace_id":"","span_id":"",` +
		`"message":"a\\b\u0001` + "\uFFFD" + `c\u2028","attributes":{"k\n":"é","almanac_invalid_utf8":"message"},"ms":1.5e-9,"at":"2026-11-21T03:42:42.803062906Z","month":202611,"shard":"00000000000000ab","pos":7}` + "\n"
	if got := string(w.Append(nil, 0, 7)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want = `{"ts":"2026-11-21T03:42:43.803062906Z","id":"` + r.ID(1).String() + `","level":"","service":"","type":"","user_id":"","trace_id":"","span_id":"","message":"","attributes":{},"ms":0,"at":"1970-01-01T00:00:00.000000000Z","month":202611,"shard":"00000000000000ab","pos":8}` + "\n"
	if got := string(w.Append(nil, 1, 8)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n := testing.AllocsPerRun(10, func() { w.Open(r, 1, 202611, 0xab); _ = w.Append(lineBuffer[:0], 0, 7) }); n > 0 {
		t.Errorf("%v allocations for an event", n)
	}
}

var lineBuffer = make([]byte, 0, 4096)

// A line is valid JSON that says what the event is, whatever its strings hold.
func FuzzLineWriter(f *testing.F) {
	f.Add("m\x00", "k", "v\xc3", 1.0, int64(1))
	f.Add("\u2029\uFFFD\xff", "", "\"", math.Inf(1), int64(-1))
	topic := schemas.NewTopic("app", schemas.Field{Name: "n", Type: schemas.TypeInt64}, schemas.Field{Name: "ms", Type: schemas.TypeFloat64})
	f.Fuzz(func(t *testing.T, message, key, value string, ms float64, n int64) {
		at := time.Unix(1, 0)
		r, _ := openFrame(t, &topic, schemas.Event{Time: at, Message: message, Service: value, Attrs: []schemas.Attr{
			schemas.String("x"+key, value), schemas.Int64("n", n), schemas.Float64("ms", ms)}})
		w := frame.NewLineWriter(&topic)
		w.Open(r, 1, 197001, 1)
		line := w.Append(nil, 0, 1)
		var got struct {
			N  int64    `json:"n"`
			Ms *float64 `json:"ms"`
		}
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if got.N != n || got.Ms != nil && *got.Ms != ms {
			t.Fatalf("%s: want n %d, ms %v", line, n, ms)
		}
	})
}

func BenchmarkLineWriter(b *testing.B) {
	topic := schemas.NewTopic("app", schemas.Field{Name: "ms", Type: schemas.TypeFloat64})
	var events []schemas.Event
	for i := range 2000 {
		events = append(events, schemas.Event{Time: time.Unix(1767225600+int64(i), 0), Level: "info", Service: "api", Type: "request", UserID: fmt.Sprintf("u-%d", i),
			Message: "GET /v1/things/4711 was answered", Attrs: []schemas.Attr{schemas.String("region", "eu"), schemas.Float64("ms", float64(i)/7)}})
	}
	r, payload := openFrame(b, &topic, events...)
	w := frame.NewLineWriter(&topic)
	var out []byte
	for b.Loop() {
		_ = r.Open(payload, &topic, 1)
		w.Open(r, 1, 202601, 1)
		out = out[:0]
		for i := range r.Rows() {
			out = w.Append(out, i, 1)
		}
	}
	b.SetBytes(int64(len(out)))
	b.ReportMetric(float64(b.N)*2000/b.Elapsed().Seconds(), "events/s")
}
