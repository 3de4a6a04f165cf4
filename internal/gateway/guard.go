package gateway

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/gateway/guard"
)

// guarded is a listener's handler behind what every request passes first.
func (g *Gateway) guarded(next http.Handler, fail guard.Refuser) http.Handler {
	return guard.Handler(next, guard.Config{Fail: fail, OnError: g.cfg.OnError, Who: g.who()})
}
