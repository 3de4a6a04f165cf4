package integration

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/integration/browser"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A page that is merely visited reads, writes and ends nothing by the engine's two ports, by any way that a page has.
func TestPageAtTheEnginesPorts(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	db := s.SQL()
	for _, sql := range []string{
		"CREATE TABLE t (n UInt64, secret String) ENGINE = MergeTree ORDER BY n",
		"INSERT INTO t VALUES (1, 'the-secret')",
	} {
		if _, err := db.ExecContext(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	table, pid := s.Database+".t", s.Engine.PID()
	at := func(base, sql, more string) browser.Request {
		return browser.Request{URL: base + "/?query=" + url.QueryEscape(sql) + more, Body: sql}
	}
	native := "http://" + s.ClickHouseTCP
	results := browser.Results(browser.NewSite(t).Visit(browser.Ways(
		at(s.ClickHouseHTTP, "SELECT 'read-it', secret FROM "+table, ""),
		at(s.ClickHouseHTTP, "SELECT concat('read','-it')", "&user=default&add_http_cors_header=1"),
		at(s.ClickHouseHTTP, "SELECT concat('<script>fetch(\"/report\")</script>read','-it') FORMAT RawBLOB", "&user=default&http_response_headers="+url.QueryEscape("{'Content-Type':'text/html'}")),
		at(s.ClickHouseHTTP, "INSERT INTO "+table+" VALUES (2, 'written')", "&user=reader&password="),
		at(s.ClickHouseHTTP, "SYSTEM STOP LISTEN TCP", "&user=default"),
		at(native, "SELECT 'read-it'", ""),
		browser.Request{URL: s.ClickHouseHTTP + "/play", Body: "x"},
		browser.Request{URL: s.ClickHouseHTTP + "/dashboard", Body: "x"},
	)))
	if len(results) < 8*10 || results["exception"] != "" {
		t.Errorf("the page did not try everything: %d results, %s", len(results), results["exception"])
	}
	for way, got := range results {
		if strings.Contains(got, "read-it") || strings.Contains(got, "the-secret") || strings.HasPrefix(got, "read") {
			t.Errorf("%s: the page read %.300q", way, got)
		}
		if got == "loaded" {
			t.Errorf("%s: an answer of the engine was shown or run", way)
		}
	}
	var rows string
	if err := db.QueryRowContext(t.Context(), "SELECT toString(count()) FROM t").Scan(&rows); err != nil || rows != "1" {
		t.Errorf("the table has %s rows, %v; want the one from before", rows, err)
	}
	if now := s.Engine.PID(); now != pid {
		t.Errorf("the engine was started again: %d, before %d", now, pid)
	}
	if err := s.Engine.Healthy(t.Context()); err != nil {
		t.Error(fmt.Errorf("after the page: %w", err))
	}
}
