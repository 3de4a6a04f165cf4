package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestSpan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		query string
		good  bool
	}{
		"open": {"", true}, "both": {"from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00.5Z", true}, "back": {"from=-15m", true},
		"a word": {"from=yesterday", false}, "no unit": {"to=-15", false},
	} {
		q, _ := url.ParseQuery(c.query)
		if _, _, err := span(q); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
	q, _ := url.ParseQuery("from=-15m")
	if from, _, _ := span(q); time.Since(from) < 15*time.Minute || time.Since(from) > time.Hour {
		t.Errorf("-15m is %s", from)
	}
}

func TestBadParameters(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	New(Config{}).Add(mux)
	for _, path := range []string{"events?limit=0", "events?limit=x", "events?order=up", "histogram?step=0", "histogram", "count?from=x"} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/topics/app/"+path, nil))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"code":"bad_parameter"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
