package producer

import (
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
)

func TestZerologKeepsEveryField(t *testing.T) {
	capture := new(captureLink)
	p := startOn(t, capture, Config{Service: "api"})
	zl := zerolog.New(p.Writer()).With().Timestamp().Logger()
	before := time.Now().Truncate(time.Second)
	zl.Warn().Str("user_id", "u-7").Str("type", "login").Str("trace_id", "abc").
		Err(errors.New("broken")).Int("n", 3).Float64("f", 1.5).Bool("ok", true).Strs("list", []string{"a", "b"}).
		Dict("request", zerolog.Dict().Str("method", "GET")).Caller().Msg("hello \"you\"")
	zl.Log().Msg("without a level")
	if _, err := p.Writer().WriteLevel(zerolog.ErrorLevel, []byte("not JSON\n")); err != nil {
		t.Error(err)
	}
	log.New(p.Writer(), "std: ", 0).Print("two\nlines")
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := capture.events(t)
	byMessage := map[string]Event{}
	for _, ev := range got {
		if ev.Time.Before(before) || ev.ID.IsZero() {
			t.Errorf("%+v", ev)
		}
		ev.ID, ev.Time = ID{}, time.Time{}
		for i, a := range ev.Attrs {
			if a.Key == "caller" && strings.Contains(a.Text(), "zerolog_test.go:") {
				ev.Attrs[i] = String("caller", "here")
			}
		}
		byMessage[ev.Message] = ev
	}
	want := map[string]Event{
		`hello "you"`: {Level: "warn", Service: "api", Type: "login", UserID: "u-7", TraceID: "abc", Message: `hello "you"`, Attrs: []Attr{
			String("error", "broken"), String("n", "3"), String("f", "1.5"), String("ok", "true"), String("list", `["a","b"]`),
			String("request.method", "GET"), String("caller", "here")}},
		"without a level": {Service: "api", Message: "without a level"},
		"not JSON":        {Level: "error", Service: "api", Message: "not JSON"},
		"std: two\nlines": {Service: "api", Message: "std: two\nlines"},
	}
	if d := cmp.Diff(want, byMessage, cmp.AllowUnexported(Attr{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A fatal line waits for the stream, but not forever.
func TestZerologFatalWaitsAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startOn(t, new(silentLink), Config{})
		start := time.Now()
		_, err := p.Writer().WriteLevel(zerolog.FatalLevel, []byte(`{"level":"fatal","message":"gone"}`))
		if d := time.Since(start); !errors.Is(err, ErrOutcomeUnknown) || d != fatalWait {
			t.Errorf("after %s: %v", d, err)
		}
		closeNow(p)
	})
}

// The process ends at once after Fatal; its last lines are stored all the same.
func TestZerologFatalIsStored(t *testing.T) {
	if url := os.Getenv("PRODUCER_TEST_FATAL_URL"); url != "" {
		p, err := Connect(context.Background(), url, Config{Topic: "app", Linger: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		zl := zerolog.New(p.Writer())
		zl.Info().Str("user_id", user(0)).Msg("before")
		zl.Fatal().Str("user_id", user(1)).Msg("last words")
	}
	t.Parallel()
	e := newEnv(t, app, withSync)
	cmd := exec.CommandContext(e.ctx(), os.Args[0], "-test.run=^TestZerologFatalIsStored$")
	cmd.Env = append(os.Environ(), "PRODUCER_TEST_FATAL_URL="+e.srv.ClientURL())
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("the child ended with %v: %s", err, out)
	}
	checkOnce(t, e, 2)
}
