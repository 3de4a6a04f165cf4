package gateway

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime/debug"

	"github.com/almanac-events/almanac/gateway/request"
)

// refuser answers with an error in the shape of a listener's protocol.
type refuser func(http.ResponseWriter, *http.Request, error)

// guarded is what every HTTP request passes first: its id, that a page of another site
// did not make it, and that no fault of one request ends the process's others.
func (g *Gateway) guarded(next http.Handler, fail refuser) http.Handler {
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail(w, r, request.Refuse(http.StatusForbidden, "cross_origin", "a page of another origin may not send requests here", ""))
	}))
	return request.WithID(g.recovered(ownHost(origin.Handler(next), fail), fail))
}

// ownHost refuses names that are not this machine's on connections of its loopback, so
// that a name somewhere else cannot be made to mean 127.0.0.1 and read what is here.
func ownHost(next http.Handler, fail refuser) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if a, ok := local.(*net.TCPAddr); ok && a.IP.IsLoopback() && !isLoopback(r.Host) {
			fail(w, r, request.Refuse(http.StatusMisdirectedRequest, "wrong_host",
				fmt.Sprintf("the request names the host %q, and this listener is on loopback", r.Host), "use 127.0.0.1 or localhost"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host == "" || host == "localhost" {
		return true
	}
	if len(host) > 2 && host[0] == '[' {
		host = host[1 : len(host)-1]
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// recovered answers 500 where a handler panics, and reports the stack.
func (g *Gateway) recovered(next http.Handler, fail refuser) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // it is compared so in net/http
				panic(v)
			}
			g.cfg.OnError(fmt.Errorf("gateway: %s %s: panic: %v\n%s", r.Method, r.URL.Path, v, debug.Stack()))
			fail(w, r, request.Refuse(http.StatusInternalServerError, "internal", "a fault in the gateway ended this request", "report it with the request's id"))
		}()
		next.ServeHTTP(w, r)
	})
}

// quiet drops what net/http says of single connections: resets and bad handshakes.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }
