package inputs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/api"
)

// A slow body is one byte of many, with a length or in chunks, or the first bytes of a packed one.
var slowBodies = []string{
	"Content-Length: 200000\r\n\r\n{",
	"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
	"Content-Encoding: gzip\r\nContent-Length: 200000\r\n\r\n\x1f\x8b\x08\x00",
}

// slowRoute is a route of a listener.
type slowRoute struct{ base, method, path string }

// everyRoute are all that a process serves over HTTP: those that are declared, those of other programs, and the page.
func (n *node) everyRoute() (all []slowRoute) {
	n.t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.Spec())
	if err != nil {
		n.t.Fatal(err)
	}
	add := func(base, method, path string) {
		all = append(all, slowRoute{base, method, usual.Replace(strings.ReplaceAll(path, "{topic}", "app"))})
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			add(n.HTTP, method, path)
		}
	}
	for _, route := range gateway.Foreign() {
		method, path, _ := strings.Cut(route, " ")
		add(n.HTTP, method, path)
	}
	for _, path := range []string{"/", "/console/", "/healthz", "/readyz", "/version", "/nothing/here"} {
		add(n.HTTP, http.MethodGet, path)
		add(n.HTTP, http.MethodPost, path)
	}
	for _, below := range []struct{ base, path string }{{n.HTTP, "/elastic"}, {n.Elastic, ""}} {
		add(below.base, http.MethodPost, below.path+"/_bulk")
		add(below.base, http.MethodPut, below.path+"/app/_bulk")
		add(below.base, http.MethodGet, below.path+"/_license")
	}
	for _, path := range []string{"/v1/logs", "/t/app/v1/logs", "/t/cpu/v1/metrics", "/v1/traces"} {
		add(n.OTLPHTTP, http.MethodPost, path)
	}
	return all
}

// Clients that send the head of a request and a byte of its body, at every route that there is, are cut after some seconds. They
// hold nothing that others need: these read, ask SQL and send beside them.
func TestSlowBodiesOfEveryRoute(t *testing.T) {
	n := up(t)
	secret := n.secret()
	var cut, sent sync.WaitGroup
	slow := func(r slowRoute, body string) {
		u, err := url.Parse(r.base)
		if err != nil {
			t.Fatal(err)
		}
		sent.Add(1)
		cut.Go(func() {
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
			if err == nil {
				defer func() { _ = c.Close() }()
				_, err = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s", r.method, r.path, secret, body)
			}
			sent.Done()
			if err != nil {
				t.Errorf("%s %s: %v", r.method, r.path, err)
				return
			}
			_ = c.SetReadDeadline(time.Now().Add(maxWait))
			if strings.HasSuffix(r.path, "/tail") { // its answer goes on for as long as who asks
				_, err = bufio.NewReader(c).ReadByte()
			} else {
				_, err = io.Copy(io.Discard, c)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s %s%s with a slow body (%q) is kept for %s", r.method, r.base, r.path, body, maxWait)
			}
		})
	}
	routes := n.everyRoute()
	for _, r := range routes {
		for _, body := range slowBodies {
			slow(r, body)
		}
	}
	for range 40 { // more than there are slots
		slow(slowRoute{n.HTTP, http.MethodPost, "/v1/sql"}, slowBodies[0])
		slow(slowRoute{n.HTTP, http.MethodPost, "/clickhouse/"}, slowBodies[0])
		slow(slowRoute{n.HTTP, http.MethodPost, "/api/v1/query"}, slowBodies[0])
		slow(slowRoute{n.HTTP, http.MethodPost, "/loki/api/v1/query"}, slowBodies[0])
		slow(slowRoute{n.HTTP, http.MethodPost, "/v1/replays"}, slowBodies[0])
	}
	sent.Wait()
	honest := []struct{ method, path, body string }{
		{http.MethodPost, "/v1/sql", "SELECT 1"}, {http.MethodGet, "/v1/topics", ""}, {http.MethodPost, "/clickhouse/", "SELECT 1"},
		{http.MethodPost, "/v1/topics/app/events", `{"message":"honest"}`}, {http.MethodGet, "/v1/topics/app/count", ""}, {http.MethodPost, "/t/cpu/api/v1/query", "query=1"},
	}
	client := &http.Client{Transport: n.authorized(&http.Transport{}), Timeout: maxWait}
	t.Cleanup(client.CloseIdleConnections)
	var took []time.Duration
	for i := range 60 {
		h := honest[i%len(honest)]
		req, err := http.NewRequestWithContext(t.Context(), h.method, n.HTTP+h.path, strings.NewReader(h.body))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasPrefix(h.body, "query="):
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		case strings.HasPrefix(h.body, "{"):
			req.Header.Set("Content-Type", "application/json")
		}
		began := time.Now()
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s %s beside slow clients: %v", h.method, h.path, err)
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s beside slow clients: %s %.300s %v", h.method, h.path, resp.Status, text, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("%d honest requests beside slow ones of %d routes: p99 %s", len(took), len(routes), took[len(took)*99/100].Round(time.Millisecond))
	cut.Wait()
}
