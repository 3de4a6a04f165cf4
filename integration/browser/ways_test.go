package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/almanac-events/almanac/integration/browser"
)

// The ways reach a server that lets everybody in: else what a test does not see by them says nothing.
func TestWaysReachAServerThatAllows(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen[r.Method+" "+r.Header.Get("Sec-Fetch-Dest")]++
		mu.Unlock()
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Headers", "*, Authorization")
		_, _ = fmt.Fprint(w, "what everybody may read")
	}))
	defer server.Close()
	results := browser.Results(browser.NewSite(t).Visit(browser.Ways(browser.Request{URL: server.URL + "/?q=1", Body: "SELECT 1"})))
	for _, way := range []string{"fetch get 0", "fetch post 0", "fetch headers 0"} {
		if got := results[way]; !strings.Contains(got, "what everybody may read") {
			t.Errorf("%s: %q", way, got)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, way := range []string{"GET image", "GET script", "GET iframe", "POST iframe", "GET document", "GET empty", "POST empty"} {
		if seen[way] == 0 {
			t.Errorf("no request of %s: %v", way, seen)
		}
	}
}
