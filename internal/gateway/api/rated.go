package api

import (
	"context"
	"io"
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// Rates count what tokens write by their rates, in events and bytes (pool.Pool).
type Rates interface {
	WithinRate(t *access.Token, events, bytes int) error
	Charge(t *access.Token, events, bytes int)
}

// written is what a request that changes something has.
type written struct {
	io.ReadCloser
	changes, bytes int
}

// Read counts.
func (w *written) Read(p []byte) (n int, err error) {
	n, err = w.ReadCloser.Read(p)
	w.bytes += n
	return n, err
}

type writtenKey struct{}

// changes says how many changes a request has, where it is not one.
func changes(ctx context.Context, n int) {
	if w, ok := ctx.Value(writtenKey{}).(*written); ok {
		w.changes = n
	}
}

// rated carries a change out within its token's rates: as one event of the size that it says, and then of the one that it had.
func (a *API) rated(t *access.Token, w http.ResponseWriter, r *http.Request, h http.HandlerFunc) {
	if a.cfg.Rates == nil || t == nil {
		h(w, r)
		return
	}
	said := int(max(r.ContentLength, 0))
	if err := a.cfg.Rates.WithinRate(t, 1, said); err != nil {
		request.Fail(w, r, err)
		return
	}
	had := &written{ReadCloser: r.Body, changes: 1}
	r = r.WithContext(context.WithValue(r.Context(), writtenKey{}, had))
	r.Body = had
	defer func() { a.cfg.Rates.Charge(t, max(had.changes-1, 0), max(had.bytes-said, 0)) }()
	h(w, r)
}
