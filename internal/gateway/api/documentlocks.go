package api

import (
	"net/http"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

// lockRequest acquires a lock, or renews the one that a token names.
type lockRequest struct {
	For   string `json:"for"`
	By    string `json:"by"`
	Token uint64 `json:"token"`
}

// defaultLock is how long a lock is held that does not say so.
const defaultLock = 30 * time.Second

func lockDocument(c *documents.Collection, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	var q lockRequest
	if err := body(w, r, &q); err != nil {
		return nil, err
	}
	d := defaultLock
	if q.For != "" {
		var ok bool
		if d, ok = schemas.ParseSpan(q.For); !ok {
			return nil, request.Refuse(http.StatusBadRequest, "bad_request", "for is "+q.For+", it must be a length of time such as 30s", "")
		}
	}
	if q.Token != 0 {
		return c.Renew(r.Context(), r.PathValue("id"), q.Token, d)
	}
	return c.Lock(r.Context(), r.PathValue("id"), q.By, d)
}

// getLock answers who holds the lock on an id, and until when.
func getLock(c *documents.Collection, p *params, _ http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	l, err := c.Locked(r.Context(), r.PathValue("id"))
	if err == nil && l == nil {
		return nil, request.Refuse(http.StatusNotFound, "not_locked", "no lock is held on it", "")
	}
	return l, err
}

// unlockDocument releases the lock that the token names, or by force any lock.
func unlockDocument(c *documents.Collection, p *params, _ http.ResponseWriter, r *http.Request) (any, error) {
	token := p.token("token")
	if force := p.yes("force"); force != (token == documents.AnyLock) {
		p.bad("token", "the lock's token, or absent with force=true")
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	return status{http.StatusNoContent, nil}, c.Unlock(r.Context(), r.PathValue("id"), token)
}
