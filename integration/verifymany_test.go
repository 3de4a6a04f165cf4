package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
)

// ClickHouse is asked about many shards at once: a proof of twenty takes as many statements as one of a few. A statement
// about one shard looks at every part of the table.
func TestVerifyAsksAboutManyShards(t *testing.T) {
	t.Parallel()
	topic := oneLaneTopic()
	topic.Rotate.Rows = 2
	e := start(t, topic)
	stopRouter, stopSink := e.router(), e.sink()
	p := e.producer("app")
	dsn, err := url.Parse(e.srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	to := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: dsn.Scheme, Host: dsn.Host})
	through := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		to.ServeHTTP(w, r)
	}))
	t.Cleanup(through.Close)
	near, err := url.Parse(through.URL)
	if err != nil {
		t.Fatal(err)
	}
	dsn.Host = near.Host
	db, err := tables.Open(dsn.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	v, err := verify.New(e.connect(), e.reg, db)
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	send := func(n int) {
		t.Helper()
		for range n {
			if err := p.Publish(t.Context(), producer.Event{Message: fmt.Sprint(sent), UserID: "u"}); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		e.stored("app", uint64(sent), time.Minute)
		e.closed("app", 30*time.Second)
	}
	proven := func() (shards int, statements int64) {
		t.Helper()
		rep, err := answered(func() (*verify.Report, error) {
			asked.Store(0)
			return v.Full().Run(t.Context(), "")
		})
		if err != nil || !rep.OK() || rep.Stored != uint64(sent) {
			t.Fatalf("%v, %+v", err, rep)
		}
		return len(rep.Topics[0].Shards), asked.Load()
	}
	send(8)
	few, forFew := proven()
	send(40)
	stopRouter()
	stopSink()
	many, forMany := proven()
	if many < few+15 || few < 3 {
		t.Fatalf("%d shards, then %d", few, many)
	}
	if forFew == 0 || forMany > forFew+5 { // where an answer was lost one is asked for again
		t.Errorf("%d statements about %d shards, %d about %d", forFew, few, forMany, many)
	}
}
