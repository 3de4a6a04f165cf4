package zerologger_test

import (
	"context"
	"errors"
	"log"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/producer/zerologger"
	"github.com/almanac-events/almanac/schemas"
)

func onMemory(t *testing.T, cfg producer.Config) (*producer.Memory, *producer.Producer) {
	t.Helper()
	m := producer.NewMemory(schemas.NewTopic("app"))
	cfg.Topic = "app"
	p, err := m.Producer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m, p
}

func TestZerologKeepsEveryField(t *testing.T) {
	t.Parallel()
	m, p := onMemory(t, producer.Config{Service: "api"})
	w := zerologger.New(p)
	zl := zerolog.New(w).With().Timestamp().Logger()
	before := time.Now().Truncate(time.Second)
	zl.Warn().Str("user_id", "u-7").Str("type", "login").Str("trace_id", "abc").
		Err(errors.New("broken")).Int("n", 3).Float64("f", 1.5).Bool("ok", true).Strs("list", []string{"a", "b"}).
		Dict("request", zerolog.Dict().Str("method", "GET")).Caller().Msg("hello \"you\"")
	zl.Log().Msg("without a level")
	if _, err := w.WriteLevel(zerolog.ErrorLevel, []byte("not JSON\n")); err != nil {
		t.Error(err)
	}
	log.New(p.Writer(), "std: ", 0).Print("two\nlines")
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	byMessage := map[string]producer.Event{}
	for _, ev := range m.Events() {
		if ev.Time.Before(before) || ev.ID.IsZero() {
			t.Errorf("%+v", ev)
		}
		ev.ID, ev.Time = schemas.ID{}, time.Time{}
		for i, a := range ev.Attrs {
			if a.Key == "caller" && strings.Contains(a.Text(), "zerologger_test.go:") {
				ev.Attrs[i] = producer.String("caller", "here")
			}
		}
		byMessage[ev.Message] = ev
	}
	s := producer.String
	want := map[string]producer.Event{
		`hello "you"`: {Level: "warn", Service: "api", Type: "login", UserID: "u-7", TraceID: "abc", Message: `hello "you"`, Attrs: []producer.Attr{
			s("error", "broken"), s("n", "3"), s("f", "1.5"), s("ok", "true"), s("list", `["a","b"]`), s("request.method", "GET"), s("caller", "here")}},
		"without a level": {Service: "api", Message: "without a level"},
		"not JSON":        {Level: "error", Service: "api", Message: "not JSON"},
		"std: two\nlines": {Service: "api", Message: "std: two\nlines"},
	}
	if d := cmp.Diff(want, byMessage, cmp.AllowUnexported(producer.Attr{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A fatal line waits for the stream, but not forever.
func TestZerologFatalWaitsAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p := onMemory(t, producer.Config{Linger: time.Minute})
		w := zerologger.New(p)
		if _, err := w.Write([]byte(`{"message":"before"}`)); err != nil {
			t.Error(err)
		}
		if _, err := w.WriteLevel(zerolog.FatalLevel, []byte(`{"message":"last words"}`)); err != nil || len(m.Events()) != 2 {
			t.Errorf("%d events are stored when a fatal line returns, want 2 (%v)", len(m.Events()), err)
		}
		m.SetAway(true)
		start := time.Now()
		_, err := w.WriteLevel(zerolog.FatalLevel, []byte(`{"level":"fatal","message":"gone"}`))
		if d := time.Since(start); !errors.Is(err, producer.ErrOutcomeUnknown) || d != 5*time.Second {
			t.Errorf("after %s: %v", d, err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_ = p.Close(gone)
	})
}
