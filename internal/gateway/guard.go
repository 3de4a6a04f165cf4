package gateway

import (
	"crypto/tls"
	"net"
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/guard"
)

// guarded is a listener's handler behind what every request passes first. page says which paths are those of a page.
func (g *Gateway) guarded(l net.Listener, next http.Handler, fail guard.Refuser, page func(string) bool) http.Handler {
	return guard.Handler(next, guard.Config{Unasked: Exposed(l, g.cfg.Unasked, g.cfg.TLS), Hosts: g.cfg.InsecureHosts, Fail: fail, Page: page, OnError: g.cfg.OnError, OnRefused: func(code string) { g.cfg.OnRefused(Refusal{Reason: access.Reason(code)}) }, Who: g.identify(), Loopback: OnLoopback(l)})
}

// Exposed reports whether others reach a listener over plain text, and none is asked for a token.
func Exposed(l net.Listener, unasked Unasked, secure *tls.Config) bool {
	return unasked == UnaskedAll && secure == nil && !OnLoopback(l)
}

// OnLoopback reports whether only this machine reaches a listener.
func OnLoopback(l net.Listener) bool {
	if l == nil {
		return false
	}
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}
