package lines

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

// Bodies that are read by regular expressions keep a processor each: one client has so many at once and is refused more, another is let
// in beside it, and bodies without expressions wait for none of them. One that takes too long is refused whole.
func TestBodiesReadByExpressions(t *testing.T) {
	t.Parallel()
	var throttled, shares atomic.Int64
	e := pooltest.Start(t, func(c *pool.Config) {
		c.Hooks.Throttled = func(in pool.Input, reason string) {
			if in == pool.InputLines && reason == "busy" {
				throttled.Add(1)
			}
		}
	}, schemas.NewTopic("app"))
	in := New(Config{Pool: e.Pool, OnLimit: func(_, why string) {
		if why == request.LimitShare {
			shares.Add(1)
		}
	}})
	ask := func(in *Input, who, query string) (int, string) {
		r := httptest.NewRequestWithContext(access.With(t.Context(), &access.Principal{Name: who, Free: []access.Action{access.Send}}), http.MethodPost, "/v1/topics/app/events"+query, strings.NewReader("user=ann "+who+query))
		r.SetPathValue("topic", "app")
		r.Header.Set("Content-Type", "text/plain")
		w := httptest.NewRecorder()
		in.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	all := []string{"?extract=" + url.QueryEscape(`user=(?P<name>\w+)`), "?user_regex=" + url.QueryEscape(`user=(\w+)`), "?multiline=%5Euser"}
	taken := 0
	for free, err := in.matching.Take("a"); err == nil; free, err = in.matching.Take("a") {
		defer free()
		taken++
	}
	if most := matchers(runtime.GOMAXPROCS(0)); taken == 0 || taken >= most {
		t.Fatalf("one client has %d of %d", taken, most)
	}
	shares.Store(0)
	for i, query := range all {
		if code, text := ask(in, "a", query); code != http.StatusTooManyRequests || !strings.Contains(text, `"busy"`) || throttled.Load() != int64(i+1) || shares.Load() != int64(i+1) {
			t.Errorf("%s beyond its share: %d %s; counted %d and %d", query, code, text, throttled.Load(), shares.Load())
		}
		if code, text := ask(in, "b", query); code != http.StatusOK {
			t.Errorf("%s of another client: %d %s", query, code, text)
		}
	}
	if code, text := ask(in, "a", ""); code != http.StatusOK {
		t.Errorf("without an expression: %d %s", code, text)
	}

	short := New(Config{Pool: e.Pool})
	short.matchWait = -1 // is over
	for _, query := range all {
		if code, text := ask(short, "c", query); code != http.StatusRequestEntityTooLarge || !strings.Contains(text, `"slow_expressions"`) {
			t.Errorf("%s that takes too long: %d %s", query, code, text)
		}
	}
	if code, text := ask(short, "d", ""); code != http.StatusOK {
		t.Errorf("without an expression: %d %s", code, text)
	}
	want := []string{"user=ann a", "user=ann d"}
	for _, query := range all {
		want = append(want, "user=ann b"+query)
	}
	slices.Sort(want)
	if got := messages(e.Events("app")); !slices.Equal(got, want) {
		t.Errorf("stored are %q, want %q", got, want)
	}
}
