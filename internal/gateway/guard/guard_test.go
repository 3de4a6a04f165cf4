package guard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// A panic ends its request with 500, also one of a function that ran beside, and is reported with the stack
// of what panicked. What the answer says of itself stays.
func TestPanicsEndTheirRequest(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*http.Request){
		"here": func(*http.Request) { breaks(nil) },
		"beside": func(r *http.Request) {
			g, _ := fanout.WithContext(r.Context())
			g.Go(func() error { breaks(nil); return nil })
			_ = g.Wait()
		},
	} {
		var said error
		h := Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { f(r) }), Config{Fail: request.Fail, OnError: func(err error) { said = err }})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/topics", nil))
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), `"code":"internal"`) || strings.Contains(w.Body.String(), "nil map") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if said == nil || !strings.Contains(said.Error(), "nil map") || !strings.Contains(said.Error(), "guard.breaks") {
			t.Errorf("%s: reported is %v", name, said)
		}
		for header, want := range answers {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
	}
}

func breaks(m map[string]int) { m["a"] = 1 }
