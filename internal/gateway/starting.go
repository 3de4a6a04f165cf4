package gateway

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/almanac-events/almanac/internal/gateway/guard"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// routes are the paths of a listener, once there is a pool.
type routes struct {
	atomic.Pointer[http.Handler]
	fail guard.Refuser // request.Fail where nil
	// await returns once there is a pool, or where that is not worth waiting for.
	await func(context.Context)
}

func (r *routes) set(h http.Handler) { r.Store(&h) }

// ServeHTTP implements http.Handler.
func (r *routes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if r.Load() == nil {
		r.await(req.Context())
	}
	if h := r.Load(); h != nil {
		(*h).ServeHTTP(w, req)
		return
	}
	w.Header().Set("Retry-After", "1")
	fail := r.fail
	if fail == nil {
		fail = request.Fail
	}
	fail(w, req, request.Refuse(http.StatusServiceUnavailable, "starting", "this gateway does not have its servers yet", "send the same request again after Retry-After"))
}
