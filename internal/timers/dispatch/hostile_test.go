package dispatch

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// hostile answers by the path, each in its own bad way, until ended is closed.
func hostile(ended chan struct{}, followed *atomic.Int64) http.HandlerFunc {
	hold := func(r *http.Request) {
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // until then the server does not see the client hang up
		switch r.URL.Path {
		case "/500":
			w.WriteHeader(http.StatusInternalServerError)
		case "/404":
			w.WriteHeader(http.StatusNotFound)
		case "/text":
			_, _ = io.WriteString(w, "thanks")
		case "/redirect":
			http.Redirect(w, r, "/followed", http.StatusTemporaryRedirect)
		case "/followed":
			followed.Add(1)
		case "/large":
			_, _ = io.Copy(w, io.LimitReader(strings.NewReader(strings.Repeat(" ", 10<<20)), 10<<20))
		case "/slow", "/slow-forever":
			for range 1000 {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				select {
				case <-ended:
					return
				case <-r.Context().Done():
					return
				case <-time.After(time.Second):
				}
			}
		default:
			hold(r)
		}
	}
}

// TestHostileServer has timers called by a server that answers 500, 404, text, a redirect, 10 MB, a byte a
// second and nothing. Each ends as it should, and the timers of another server are all called while two calls
// to the hostile one still hang.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ended, followed := make(chan struct{}), new(atomic.Int64)
	evil := httptest.NewServer(hostile(ended, followed))
	defer evil.Close()
	defer close(ended)
	_, stop, _ := e.dispatcher(nil)
	defer stop()
	policy := &timer.Policy{Attempts: 2, Initial: 20 * time.Millisecond}
	cases := map[string]struct {
		err      string
		status   int
		attempts int64
		timeout  time.Duration
	}{
		"500":      {timer.ErrStatus, 500, 2, timer.MaxTimeout},
		"404":      {timer.ErrStatus, 404, 1, timer.MaxTimeout},
		"text":     {timer.ErrNotJSON, 200, 2, timer.MaxTimeout},
		"redirect": {timer.ErrRedirect, 307, 2, timer.MaxTimeout},
		"large":    {timer.ErrAnswerSize, 200, 2, timer.MaxTimeout},
		"slow":     {timer.ErrTimeout, 200, 2, 10 * time.Second}, // long enough for the status
		"nothing":  {timer.ErrTimeout, 0, 2, 2 * time.Second},
	}
	hanging := []string{"slow-forever", "nothing-forever"}
	for _, id := range hanging {
		e.create(timers.Draft{ID: id, Due: time.Now(), URL: evil.URL + "/" + id, Timeout: timer.MaxTimeout})
		e.state(id, timer.StateFiring)
	}
	for id, c := range cases {
		e.create(timers.Draft{ID: id, Due: time.Now(), URL: evil.URL + "/" + id, Timeout: c.timeout, Retry: policy})
	}
	e.createAll(60, func(int) time.Time { return time.Now() })
	for i := range 60 {
		e.state(fmt.Sprintf("id%d", i), timer.StateDone)
	}
	for _, id := range hanging {
		if tm, err := e.Get(e.ctx, "g", id); err != nil || tm.State != timer.StateFiring && tm.Error != timer.ErrTimeout {
			t.Errorf("%s: %+v, %v", id, tm, err)
		}
	}
	for id, c := range cases {
		if tm := e.state(id, timer.StateFailed); tm.Error != c.err || tm.Status != c.status || tm.Attempt != c.attempts {
			t.Errorf("%s ended as %s, status %d, after %d attempts; expected %+v", id, tm.Error, tm.Status, tm.Attempt, c)
		}
	}
	if n := followed.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}
