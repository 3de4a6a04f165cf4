package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/api"
	"github.com/almanac-events/almanac/internal/gateway/mcp"
)

// listening runs a gateway that has no servers yet, and returns its addresses.
func listening(t *testing.T) map[string]string {
	t.Helper()
	l := map[string]net.Listener{}
	addresses := map[string]string{}
	for _, name := range []string{"http", "elastic", "otlp"} {
		var err error
		if l[name], err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		addresses[name] = l[name].Addr().String()
	}
	starting := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	g := New(Config{HTTP: l["http"], Elastic: l["elastic"], OTLPHTTP: l["otlp"], Health: starting, Hold: time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return addresses
}

// shapes are how a page of another origin has a browser send requests. Each changes one.
var shapes = map[string]func(*http.Request){
	"text": func(r *http.Request) {
		r.Header.Set("Origin", "http://evil.example")
		r.Header.Set("Content-Type", "text/plain")
	},
	"form": func(r *http.Request) {
		r.Header.Set("Origin", "http://evil.example")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	},
	"upload": func(r *http.Request) {
		r.Header.Set("Referer", "http://evil.example/page")
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	},
	"no origin":  func(r *http.Request) { r.Header.Set("Origin", "null") },
	"other port": func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
	"cross-site": func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "no-cors")
	},
	"same-site": func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "same-site")
		r.Header.Set("Sec-Fetch-Mode", "cors")
	},
	"link": func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	},
	"redirect": func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "none")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
	},
	"socket": func(r *http.Request) {
		r.Header.Set("Origin", "http://evil.example")
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
	},
}

// Every route that the specification has, and every path of the inputs, refuses what a page of another
// origin sends, in each way that it can, on each listener. A program is let in.
func TestPagesOfOtherOrigins(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(api.Spec())
	if err != nil {
		t.Fatal(err)
	}
	type route struct{ listener, method, path string }
	var routes []route
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			if p := strings.NewReplacer("{", "", "}", "").Replace(path); !isHealth(p) && p != "/openapi.yaml" {
				routes = append(routes, route{"http", method, p})
			}
		}
	}
	for _, pattern := range Foreign() {
		method, path, _ := strings.Cut(pattern, " ")
		routes = append(routes, route{"http", method, strings.NewReplacer("{", "", "}", "").Replace(path)})
	}
	for _, more := range []string{"/elastic/_bulk", "/elastic/app/_bulk", "/clickhouse", "/t/app/nothing"} {
		routes = append(routes, route{"http", http.MethodPost, more})
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} { // whose clients ask for more than it has
		routes = append(routes, route{"http", method, mcp.Path})
	}
	for _, more := range []string{"/", "/_bulk", "/_cat/health"} {
		routes = append(routes, route{"elastic", http.MethodGet, more}, route{"elastic", http.MethodPost, more})
	}
	for _, more := range []string{"/v1/logs", "/v1/metrics", "/t/app/v1/logs"} {
		routes = append(routes, route{"otlp", http.MethodPost, more})
	}
	addresses := listening(t)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	t.Cleanup(client.CloseIdleConnections)
	asked := 0
	for _, to := range routes {
		ask := func(name string, want int, change func(*http.Request)) {
			req, err := http.NewRequestWithContext(t.Context(), to.method, "http://"+addresses[to.listener]+to.path, strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			change(req)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if asked++; resp.StatusCode != want {
				t.Errorf("%v, %s: %d, want %d", to, name, resp.StatusCode, want)
			}
			if closed := shut(resp.Header); closed != "" {
				t.Errorf("%v, %s: %s", to, name, closed)
			}
		}
		for name, shape := range shapes {
			ask(name, http.StatusForbidden, shape)
		}
		ask("a program", http.StatusServiceUnavailable, func(*http.Request) {}) // starting: it passed the guard
	}
	if least := 150; asked < least {
		t.Errorf("%d requests, expected %d at least", asked, least)
	}
}

// shut is what of the headers would let a browser use an answer; "" for none.
func shut(h http.Header) string {
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
	} {
		if got := h.Values(name); len(got) != 1 || got[0] != want {
			return fmt.Sprintf("%s is %q", name, got)
		}
	}
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			return name + " is there"
		}
	}
	if kind := h.Get("Content-Type"); strings.Contains(kind, "html") {
		return "Content-Type is " + kind
	}
	return ""
}

// A client sees why a request whose header is too large is refused, whether it reads before it has sent
// everything or after.
func TestLargeHeaderIsAnswered(t *testing.T) {
	t.Parallel()
	addresses := listening(t)
	for name, size := range map[string]int{"twice the bound": 60 << 10, "a megabyte": 1 << 20} {
		for listener, address := range addresses {
			t.Run(name+" "+listener, func(t *testing.T) {
				t.Parallel()
				u := url.URL{Scheme: "http", Host: address, Path: "/v1/topics"}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u.String(), nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Long", strings.Repeat("x", size))
				embeddedtest.Eventually(t, time.Minute, func() error { // a client that is slower than the server waits is cut off
					c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
					if err != nil {
						return err
					}
					defer func() { _ = c.Close() }()
					if err := req.Write(c); err != nil { // all of it, before anything is read
						return fmt.Errorf("the header was not taken: %w", err)
					}
					resp, err := http.ReadResponse(bufio.NewReader(c), req)
					if err != nil {
						return err
					}
					text, err := io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					if err != nil || resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
						return fmt.Errorf("%d %q %w", resp.StatusCode, text, err)
					}
					return nil
				})
			})
		}
	}
}
