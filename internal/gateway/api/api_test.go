package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query string
		code  string
	}{
		"none": {"", ""}, "both": {"from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00.5Z", ""}, "back": {"from=-15m", ""}, "days": {"from=-7d", ""}, "a date": {"to=2026-11-20", ""},
		"a word": {"from=yesterday", "bad_parameter"}, "no unit": {"to=-15", "bad_parameter"}, "twice": {"from=now&from=now", "bad_parameter"},
		"not known": {"form=now", "unknown_parameter"}, "a number": {"n=7", ""}, "too much": {"n=11", "bad_parameter"}, "no number": {"n=x", "bad_parameter"},
		"a switch": {"dry_run", ""}, "no switch": {"dry_run=maybe", "bad_parameter"}, "a word of three": {"order=up", "bad_parameter"}, "no step": {"step=0", "bad_parameter"},
	} {
		p := paramsOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?"+c.query, nil))
		p.time("from")
		p.time("to")
		p.number("n", 1, 10)
		p.yes("dry_run")
		p.word("order", "desc", "asc")
		p.span("step")
		err := p.end()
		if (c.code == "") != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := paramsOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?from=-15m&dry_run&fields=a,attributes['x,y'],b", nil))
	if from := p.time("from"); time.Since(from) < 15*time.Minute || time.Since(from) > time.Hour {
		t.Errorf("-15m is %s", from)
	}
	if !p.yes("dry_run") || p.yes("other") {
		t.Error("the name alone is true")
	}
	if d := cmp.Diff([]string{"a", "attributes['x,y']", "b"}, p.names("fields")); d != "" {
		t.Error(d)
	}
}

func TestBadParameters(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	New(Config{}).Add(mux)
	for _, path := range []string{"events?limit=0", "events?limit=x", "events?order=up", "histogram?step=0", "histogram", "count?from=x", "facets?n=0", "around/x/y", "values?limit=1001"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/topics/app/"+path, nil))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"code":"bad_parameter"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
