package guard

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// A panic ends its request with 500, also one of a function that ran beside, and is reported with the stack
// of what panicked. What the answer says of itself stays.
func TestPanicsEndTheirRequest(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(*http.Request){
		"here": func(*http.Request) { breaks(nil) },
		"beside": func(r *http.Request) {
			g, _ := fanout.WithContext(r.Context())
			g.Go(func() error { breaks(nil); return nil })
			_ = g.Wait()
		},
	} {
		var said error
		h := Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { f(r) }), Config{Fail: request.Fail, OnError: func(err error) { said = err }})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/topics", nil))
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), `"code":"internal"`) || strings.Contains(w.Body.String(), "nil map") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if said == nil || !strings.Contains(said.Error(), "nil map") || !strings.Contains(said.Error(), "guard.breaks") {
			t.Errorf("%s: reported is %v", name, said)
		}
		for header, want := range answers {
			if got := w.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q", name, header, got)
			}
		}
	}
}

// A panic whose value and whose address have a token is reported without it.
func TestPanicsTellNoSecret(t *testing.T) {
	t.Parallel()
	secret, id := access.NewSecret()
	var said error
	h := Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		panic("no such header: " + r.Header.Get("Authorization"))
	}), Config{Fail: request.Fail, OnError: func(err error) { said = err }})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/topics/"+secret, nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if said == nil || strings.Contains(said.Error(), secret[len(secret)-20:]) || strings.Count(said.Error(), id) != 2 {
		t.Errorf("reported is %v", said)
	}
	if strings.Contains(w.Body.String(), secret) {
		t.Errorf("answered is %s", w.Body)
	}
}

func breaks(m map[string]int) { m["a"] = 1 }

// Who needs no secret: a program of this machine, over a listener that only this machine reaches, and not by a proxy.
func TestWhoIsOnLoopback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		local  bool // the listener is on loopback
		header map[string]string
		want   bool
	}{
		"a program":                        {true, nil, true},
		"a proxy":                          {true, map[string]string{"X-Forwarded-For": "192.0.2.7"}, false},
		"a proxy that forwards by RFC":     {true, map[string]string{"Forwarded": "for=192.0.2.7"}, false},
		"a proxy that says that it is one": {true, map[string]string{"Via": "1.1 front"}, false},
		"a listener that others reach":     {false, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got access.Asked
			srv := httptest.NewServer(Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Config{Fail: request.Fail, Loopback: c.local, Who: func(_ context.Context, a *access.Asked) (*access.Principal, error) {
				got = *a
				return access.Anonymous(a.Loopback), nil
			}}))
			defer srv.Close()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/v1/topics", nil)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range c.header {
				req.Header.Set(k, v)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if got.Loopback != c.want || !got.Peer.IsLoopback() {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A request with two secrets is refused, whatever they are: what is between may have evaluated by the other.
func TestOneAuthorization(t *testing.T) {
	t.Parallel()
	counted := 0
	h := Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was let in") }), Config{Fail: request.Fail, OnRefused: func(string) { counted++ }})
	for i, name := range []string{"Authorization", "X-Clickhouse-Key"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/topics", nil)
		r.Header[name] = []string{"Bearer a", "Bearer b"}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusBadRequest || counted != i+1 {
			t.Errorf("%s: %d %s, counted %d times", name, w.Code, w.Body, counted)
		}
	}
}

// A path with parts that mean nothing is led to the one without, by an answer that is not a page; what is encoded stays as it is.
func TestPathsThatAreNotClean(t *testing.T) {
	t.Parallel()
	for target, to := range map[string]string{
		"//v1/topics": "/v1/topics", "/v1//topics?a=%2F": "/v1/topics?a=%2F", "/v1/./topics/": "/v1/topics/", "/t/app/../points/x": "/t/points/x", "/v1/topics/..": "/v1", "///evil.example": "/evil.example",
		"//evil.example/%2e%2e//x": "/evil.example/%2e%2e/x", "/..": "/", "//": "/", "/": "", "/v1/topics": "", "/v1/topics/": "", "/v1/%2e%2e/topics": "", "/v1/%2f%2fx": "", "/v1/a..b/...": "",
	} {
		came := false
		h := Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { came = true }), Config{Fail: request.Fail})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, nil))
		if got := w.Header().Get("Location"); got != to || came != (to == "") || !came && (w.Code != http.StatusTemporaryRedirect || w.Header().Get("Content-Type") != "application/json") {
			t.Errorf("%s: %d to %q, want %q: %s", target, w.Code, got, to, w.Body)
		}
	}
}

// Of a request by a proxy whose body has no length nothing is read as the next request.
func TestProxiedChunksEndTheirConnection(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }), Config{Fail: request.Fail}))
	defer srv.Close()
	for proxy, want := range map[string]int{"": 2, "X-Forwarded-Host: x\r\n": 1} {
		c, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(c, "POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\n"+proxy+"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /y HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		got, _ := io.ReadAll(c) // a connection that is closed over what was not read is reset
		if n := strings.Count(string(got), "HTTP/1.1 200"); n != want {
			t.Errorf("%q: %d answers, want %d: %s", proxy, n, want, got)
		}
		_ = c.Close()
	}
}
