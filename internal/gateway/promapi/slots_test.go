package promapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// A client that has all queries that one may have waits for more, and is refused after a while; another is let in beside it.
func TestOneClientLeavesSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shares := 0
		a := New(Config{Topic: "metrics", OnLimit: func(_, why string) {
			if why == request.LimitShare {
				shares++
			}
		}})
		mux := http.NewServeMux()
		a.Add(mux)
		var gone error // what has become of its token
		ask := func(who string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			p := &access.Principal{Name: who, Grants: []access.Grant{{Role: access.RoleRead, Topics: []string{access.Every}}}}
			p.Now = func() (*access.Principal, error) { return p, gone }
			mux.ServeHTTP(w, httptest.NewRequestWithContext(access.With(t.Context(), p), http.MethodGet, Path+"status/buildinfo", nil))
			return w
		}
		var free func()
		for range maxQueries {
			var err error
			if free, err = a.slots.Take("a"); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if w := ask("a"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "8 queries of PromQL are under way; ask again in a second") || shares != 1 || time.Since(began) != request.QueueWait {
			t.Errorf("more than its share: %d %s, counted %d, after %s", w.Code, w.Body, shares, time.Since(began))
		}
		for range maxQueries { // each of which gives its slot back
			if w := ask("b"); w.Code != http.StatusOK {
				t.Errorf("another client: %d %s", w.Code, w.Body)
			}
		}
		synctest.Wait() // nothing of the first asks for it any more
		began, gone = time.Now(), access.ErrUnauthenticated
		if w := ask("a"); w.Code != http.StatusUnauthorized || time.Since(began) > 2*time.Second {
			t.Errorf("one whose token is removed while it waits: %d %s, after %s", w.Code, w.Body, time.Since(began))
		}
		synctest.Wait()
		gone = nil
		time.AfterFunc(request.QueueWait-time.Second, free) // one of its own ends in time
		if w := ask("a"); w.Code != http.StatusOK {
			t.Errorf("one that waited: %d %s", w.Code, w.Body)
		}
	})
}
