package producer

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noTime is the producer's clock here, and so the time of events that came
// without one; slogtest wants to see which did.
var noTime = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

func TestSlogHandlerConforms(t *testing.T) {
	var (
		capture *captureLink
		p       *Producer
	)
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		capture = new(captureLink)
		p = startOn(t, capture, Config{Now: func() time.Time { return noTime }})
		t.Cleanup(func() { p.Close(context.Background()) })
		return p.SlogHandler()
	}, func(t *testing.T) map[string]any {
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		events := capture.events(t)
		if len(events) != 1 {
			t.Fatalf("%d events", len(events))
		}
		return asMap(&events[0])
	})
}

// asMap is an event as slogtest wants it: groups nested.
func asMap(ev *Event) map[string]any {
	m := map[string]any{slog.LevelKey: ev.Level, slog.MessageKey: ev.Message}
	if !ev.Time.Equal(noTime) {
		m[slog.TimeKey] = ev.Time
	}
	for i := range ev.Attrs {
		at, key := m, ev.Attrs[i].Key
		for {
			group, rest, ok := strings.Cut(key, ".")
			if !ok {
				break
			}
			if at[group] == nil {
				at[group] = map[string]any{}
			}
			at, key = at[group].(map[string]any), rest
		}
		at[key] = ev.Attrs[i].Text()
	}
	return m
}

type stringer struct{ s *string }

func (s stringer) String() string { return *s.s }

type lazy struct{ v slog.Value }

func (l lazy) LogValue() slog.Value { return l.v }

func TestSlogValues(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 1, time.UTC)
	for _, c := range []struct {
		value any
		want  string
	}{
		{"text", "text"},
		{-7, "-7"},
		{uint64(math.MaxUint64), "18446744073709551615"},
		{1.5, "1.5"},
		{true, "true"},
		{1500 * time.Millisecond, "1500000000"},
		{at, "2026-11-20T12:00:00.000000001Z"},
		{time.Time{}, "0001-01-01 00:00:00 +0000 UTC"},
		{errors.New("broken"), "broken"},
		{netip.MustParseAddr("10.0.0.1"), "10.0.0.1"},
		{[]byte("raw"), "raw"},
		{[]int{1, 2}, "[1,2]"},
		{map[string]int{"a": 1}, `{"a":1}`},
		{struct{ A int }{1}, `{"A":1}`},
		{make(chan int), ""},
		{nil, "null"},
		{stringer{}, "!PANIC: runtime error: invalid memory address or nil pointer dereference"},
		{lazy{slog.IntValue(3)}, "3"},
	} {
		a := attr("k", resolve(slog.AnyValue(c.value)))
		if got := a.Text(); got != c.want && c.want != "" {
			t.Errorf("%T %v: %q, want %q", c.value, c.value, got, c.want)
		}
	}
}

func TestSlogFieldsGroupsAndSource(t *testing.T) {
	capture := new(captureLink)
	p := startOn(t, capture, Config{Service: "api"})
	defer p.Close(context.Background())
	log := slog.New(p.SlogHandler(SlogOptions{
		HandlerOptions: slog.HandlerOptions{AddSource: true, Level: slog.LevelDebug, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			switch {
			case a.Key == "password":
				return slog.String(a.Key, strings.Join(groups, "/")+" hidden")
			case a.Key == "gone", a.Key == "file", a.Key == "line":
				return slog.Attr{}
			}
			return a
		}},
		TraceIDs: func(context.Context) (string, string) { return "abc", "def" },
	}))
	base := log.With("user_id", "u-7", "region", "eu")
	base.With("a", 1).WithGroup("request").With("method", "GET").
		Log(t.Context(), slog.LevelWarn+2, "hello", "password", "x", "gone", 1, "user_id", "kept", slog.Group("h", "n", 2), slog.Group("empty"))
	base.Info("second", "type", "login", "service", "web", "trace_id", 12)
	if err := p.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := capture.events(t)
	for i := range got {
		got[i].ID, got[i].Time = ID{}, time.Time{}
	}
	const here = "github.com/almanac-events/almanac/producer.TestSlogFieldsGroupsAndSource"
	want := []Event{
		{Level: "warn+2", Service: "api", UserID: "u-7", TraceID: "abc", SpanID: "def", Message: "hello", Attrs: []Attr{
			String("region", "eu"), String("a", "1"), String("request.method", "GET"), String("request.password", "request hidden"),
			String("request.user_id", "kept"), String("request.h.n", "2"), String("source.function", here)}},
		{Level: "info", Service: "web", Type: "login", UserID: "u-7", TraceID: "12", SpanID: "def", Message: "second", Attrs: []Attr{
			String("region", "eu"), String("source.function", here)}},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(Attr{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSlogIsQuietBelowItsLevel(t *testing.T) {
	p := startOn(t, new(instantLink), Config{})
	defer p.Close(context.Background())
	if h := p.SlogHandler(); h.Enabled(t.Context(), slog.LevelDebug) || !h.Enabled(t.Context(), slog.LevelInfo) {
		t.Error("the default level is not info")
	}
}

func TestSlogAllocatesLikeSlog(t *testing.T) {
	p := startOn(t, new(instantLink), Config{Policy: Block})
	defer p.Close(context.Background())
	log := slog.New(p.SlogHandler())
	ctx := t.Context()
	one := func() {
		log.LogAttrs(ctx, slog.LevelInfo, "user logged in", slog.String("user_id", "u-7"), slog.String("type", "login"), slog.Int("n", 3))
	}
	for range 10_000 {
		one()
	}
	if n := testing.AllocsPerRun(10_000, one); n > 0 && !raceEnabled {
		t.Errorf("%v allocations per record", n)
	}
}
