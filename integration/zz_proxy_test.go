package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/tables"
)

func zzProxy(t testing.TB, e *env, name string) *tables.DB {
	u, _ := url.Parse(e.srv.ClickHouseHTTP)
	rp := httputil.NewSingleHostReverseProxy(u)
	f, _ := os.OpenFile("/tmp/zzproxy.log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	var mu sync.Mutex
	rp.ModifyResponse = func(r *http.Response) error {
		tok := r.Request.URL.Query().Get("insert_deduplication_token")
		if tok != "" {
			mu.Lock()
			fmt.Fprintf(f, "%s %s done %s %d %s %s\n", time.Now().Format("05.000000"), name, tok, r.StatusCode, r.Header.Get("X-ClickHouse-Summary"), r.Header.Get("X-ClickHouse-Exception-Code"))
			mu.Unlock()
		}
		return nil
	}
	d := rp.Director
	rp.Director = func(r *http.Request) {
		if tok := r.URL.Query().Get("insert_deduplication_token"); tok != "" {
			mu.Lock()
			fmt.Fprintf(f, "%s %s begin %s %d bytes %s\n", time.Now().Format("05.000000"), name, tok, r.ContentLength, r.URL.Query().Get("query")[:0])
			mu.Unlock()
		}
		d(r)
	}
	s := httptest.NewServer(rp)
	t.Cleanup(s.Close)
	pu, _ := url.Parse(s.URL)
	pu.User, pu.Path = url.UserPassword(e.srv.User, e.srv.Password), e.srv.Database
	db, err := tables.Open(pu.String())
	if err != nil {
		t.Fatal(err)
	}
	return db
}
