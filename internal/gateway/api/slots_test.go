package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/timers"
)

// A client that has all that one may is refused more of each sort of request, and another is let in beside it.
func TestOneClientLeavesSlots(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slots  func(*API) *request.Slots
		method string
		path   string
		accept string
		each   int // that one may have
		let    int // the answer of a request that is let in, to a fault that is found then
	}{
		"tails":           {func(a *API) *request.Slots { return a.tails }, http.MethodGet, "/v1/topics/app/tail?nome=1", "", maxTails, http.StatusBadRequest},
		"reads":           {func(a *API) *request.Slots { return a.reads }, http.MethodGet, "/v1/topics/app/count?nome=1", "", maxReads, http.StatusBadRequest},
		"pages as lines":  {func(a *API) *request.Slots { return a.reads }, http.MethodGet, "/v1/topics/app/events?nome=1", "application/x-ndjson", maxReads, http.StatusBadRequest},
		"statements":      {func(a *API) *request.Slots { return a.sql }, http.MethodPost, "/v1/sql", "", maxSQL, http.StatusForbidden},
		"ClickHouse's":    {func(a *API) *request.Slots { return a.sql }, http.MethodPost, "/clickhouse/", "", maxSQL, http.StatusForbidden},
		"looks":           {func(a *API) *request.Slots { return a.looks }, http.MethodGet, "/v1/sql/x", "", maxLooks, http.StatusNotFound},
		"one document":    {func(a *API) *request.Slots { return a.timing }, http.MethodGet, "/v1/documents/app/x", "", maxTiming, http.StatusServiceUnavailable},
		"pages of them":   {func(a *API) *request.Slots { return a.pages }, http.MethodGet, "/v1/documents/app", "", maxPages, http.StatusServiceUnavailable},
		"timers":          {func(a *API) *request.Slots { return a.timing }, http.MethodGet, "/v1/timers/app/x", "", maxTiming, http.StatusServiceUnavailable},
		"pings of anyone": {func(a *API) *request.Slots { return a.pings }, http.MethodGet, "/clickhouse/ping", "", maxPings, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counted := 0
			away := errors.New("away")
			a := New(Config{
				Timers:    func(context.Context, string) (*timers.Timers, error) { return nil, away },
				Documents: func(context.Context, string) (*documents.Collection, error) { return nil, away },
				OnLimit: func(_, why string) {
					if why == request.LimitShare {
						counted++
					}
				},
			})
			mux := http.NewServeMux()
			a.Add(mux)
			ask := func(who string) int {
				r := httptest.NewRequestWithContext(access.With(t.Context(), &access.Principal{Name: who, Grants: []access.Grant{
					{Role: access.RoleRead, Topics: []string{access.Every}}, {Role: access.RoleSQL, Topics: []string{"app"}},
				}}), c.method, c.path, strings.NewReader("SELECT 1"))
				r.Header.Set("Accept", c.accept)
				w := httptest.NewRecorder()
				mux.ServeHTTP(w, r)
				return w.Code
			}
			for range c.each {
				if _, err := c.slots(a).Take("a"); err != nil {
					t.Fatal(err)
				}
			}
			if code := ask("a"); code != http.StatusTooManyRequests || counted != 1 {
				t.Errorf("more than its share: %d, counted %d", code, counted)
			}
			if c.let == 0 {
				return // what is let in asks ClickHouse
			}
			for range c.each / 4 { // each of which gives its slot back
				if code := ask("b"); code != c.let {
					t.Errorf("another client: %d, want %d", code, c.let)
				}
			}
			if _, err := c.slots(a).Take("b"); err != nil {
				t.Errorf("what the other client took is not given back: %v", err)
			}
		})
	}
}

// ClickHouse lets the reader's account have as many statements under way as a gateway has slots: else one client would take those of all.
func TestStatementsOfTheReader(t *testing.T) {
	t.Parallel()
	want := fmt.Sprintf("<max_concurrent_queries_for_user>%d<", request.WithOthers(maxSQL)+request.WithOthers(maxPings))
	if config := access.ClickHouseConfig("almanac", "p", nil); !strings.Contains(config, want) {
		t.Errorf("the accounts of ClickHouse lack %s", want)
	}
}
