package gateway

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/otlp"
)

// What the guard refuses on the OTLP listener is a google.rpc.Status in the request's own
// content type, so that exporters can read why.
func TestGuardRefusesInTheListenersShape(t *testing.T) {
	t.Parallel()
	g := New(Config{Hold: time.Millisecond})
	srv := httptest.NewServer(g.guarded(nil, &g.otlp, otlp.Fail, nil))
	defer srv.Close()
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
		code   int
	}{
		"starting":         {func(*http.Request) {}, http.StatusServiceUnavailable, 14},
		"another host":     {func(r *http.Request) { r.Host = "logs.example.com" }, http.StatusMisdirectedRequest, 7},
		"a page elsewhere": {func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, http.StatusForbidden, 7},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/logs", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		c.change(req)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Code    int
			Message string
		}
		err = json.NewDecoder(resp.Body).Decode(&got)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != c.status || got.Code != c.code || got.Message == "" {
			t.Errorf("%s: %d %+v %v", name, resp.StatusCode, got, err)
		}
		if c.status == http.StatusServiceUnavailable && resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s: it does not say when to send again", name)
		}
	}
}
