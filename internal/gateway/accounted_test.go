package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/gateway/guard"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// Each request has an account of the process's, and gives back what it took however it ends.
func TestRequestsHaveAccounts(t *testing.T) {
	t.Parallel()
	b := budget.New(100)
	h := guard.Handler(accounted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := budget.Of(r.Context()).Take(40); err != nil || b.Used() != 40 {
			t.Errorf("%v, %d are used", err, b.Used())
		}
		if r.URL.Path == "/panics" {
			panic("a fault")
		}
	}), b), guard.Config{Fail: request.Fail})
	for _, path := range []string{"/v1/topics", "/panics", "/v1/topics"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if b.Used() != 0 {
			t.Errorf("%s: %d are used after it", path, b.Used())
		}
	}
}
