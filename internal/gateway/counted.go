package gateway

import (
	"net/http"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/pool"
)

// counted is the handler of an input whose requests are told to OnRequest.
func (g *Gateway) counted(in pool.Input, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		noted := &noting{ResponseWriter: w, code: http.StatusOK}
		defer func() { g.cfg.OnRequest(in, noted.code, time.Since(began), r.ContentLength) }()
		next.ServeHTTP(noted, r)
	})
}

// noting notes the code of an answer.
type noting struct {
	http.ResponseWriter
	code int
}

// WriteHeader implements http.ResponseWriter.
func (w *noting) WriteHeader(code int) {
	if code >= http.StatusOK { // not of an answer that only announces
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (w *noting) Unwrap() http.ResponseWriter { return w.ResponseWriter }
