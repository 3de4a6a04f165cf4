package mcp

import (
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
)

// Inside asks a handler of this process. onPanic hears of a panic, which the request is answered with 500 for.
func Inside(h func() http.Handler, onPanic func(v any, stack []byte)) func(*http.Request) (*Answer, error) {
	return func(r *http.Request) (*Answer, error) {
		body, in := io.Pipe()
		w := &answering{to: in, begun: make(chan struct{}), header: http.Header{}}
		go func() {
			defer func() {
				if v := recover(); v != nil {
					w.WriteHeader(http.StatusInternalServerError)
					_ = in.CloseWithError(errors.New("the request failed inside: the log of this process says why"))
					if err, ok := v.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
						onPanic(v, debug.Stack())
					}
					return
				}
				w.WriteHeader(http.StatusOK)
				_ = in.Close()
			}()
			if r.Body == nil {
				r.Body = http.NoBody
			}
			r.RequestURI = r.URL.RequestURI()
			h().ServeHTTP(w, r)
		}()
		select {
		case <-w.begun:
		case <-r.Context().Done():
			_ = body.CloseWithError(r.Context().Err()) // a handler that still writes ends
			return nil, r.Context().Err()
		}
		return &Answer{Code: w.code, Media: w.media, Body: body}, nil
	}
}

// answering hands an answer on as it is written.
type answering struct {
	to     *io.PipeWriter
	once   sync.Once
	begun  chan struct{}
	code   int
	header http.Header
	media  string
}

// Header implements http.ResponseWriter.
func (a *answering) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answering) WriteHeader(code int) {
	a.once.Do(func() {
		a.code, a.media = code, a.header.Get("Content-Type")
		close(a.begun)
	})
}

// Write implements http.ResponseWriter.
func (a *answering) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.to.Write(p)
}
