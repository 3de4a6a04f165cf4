package integration

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/internal/tables"
)

// profiled is the test's ClickHouse as one whose profile has these settings.
func (e *env) profiled(settings map[string]string) *tables.DB {
	e.t.Helper()
	to, err := url.Parse(e.srv.ClickHouseHTTP)
	if err != nil {
		e.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.Query()
		for name, value := range settings {
			if !asked.Has(name) {
				asked.Set(name, value)
			}
		}
		r.URL.RawQuery = asked.Encode()
		proxy.ServeHTTP(w, r)
	}))
	e.t.Cleanup(srv.Close)
	u, err := url.Parse(srv.URL)
	if err != nil {
		e.t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(e.srv.User, e.srv.Password), "/"+e.srv.Database
	db, err := tables.Open(u.String())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = db.Close() })
	return db
}

// A page is one statement that looks at its table twice. A document of which a version is stored
// between the two looks is listed, also where the server's profile, as `compatibility` with an
// older version does, lets each look see the table as it is by then.
func TestListedWhileStored(t *testing.T) {
	t.Parallel()
	e := running(t, docsTopic())
	slow := e.profiled(map[string]string{"enable_shared_storage_snapshot_in_query": "0", "merge_tree_storage_snapshot_sleep_ms": "1000"})
	c := e.documents("customers", func(cfg *documents.Config) { cfg.Archive = archive.New(e.reg, slow) })
	create(t, c, "d-", "p", 1)
	e.stored("customers", 1, time.Minute)
	// A machine that is busy may miss the time between the looks, so a page that ended unseen is read again.
	for {
		listed := make(chan int, 1)
		go func() {
			page, err := again(c.List)(t.Context(), documents.Selection{Path: "p"})
			if err != nil {
				t.Error(err)
				page = &documents.Page{}
			}
			listed <- len(page.Documents)
		}()
		var seen uint64 // pages whose first look is over
		for len(listed) == 0 && seen == 0 {
			var err error
			if seen, err = e.ask("SELECT count() FROM system.processes WHERE elapsed > 1.1 AND query LIKE 'SELECT doc_id, path,%%%s%%'", e.srv.Database); err != nil {
				t.Fatal(err)
			}
		}
		if seen == 0 {
			if <-listed; t.Context().Err() != nil || t.Failed() {
				return
			}
			continue
		}
		if _, err := c.Update(t.Context(), "d-0", documents.Always, []byte(`{"n":2}`)); err != nil {
			t.Fatal(err)
		}
		if n := <-listed; n != 1 {
			t.Errorf("%d documents are listed, expected one", n)
		}
		return
	}
}
