package tables

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Relayed is a request of a client of ClickHouse's HTTP interface.
type Relayed struct {
	Params url.Values
	Header http.Header
	Body   io.Reader
	// User and Password, when set, are used instead of the connection's own.
	User, Password string
}

// Relay sends a client's request as it is, under an account of ours, and returns
// ClickHouse's answer as it is, whatever its status. The caller closes the body.
func (db *DB) Relay(ctx context.Context, r *Relayed) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, db.base+"/?"+r.Params.Encode(), r.Body)
	if err != nil {
		return nil, err
	}
	req.Header = r.Header.Clone()
	user, password := db.user, db.pass
	if r.User != "" {
		user, password = r.User, r.Password
	}
	req.Header.Set("X-ClickHouse-User", user)
	req.Header.Set("X-ClickHouse-Key", password)
	resp, err := db.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ClickHouse at %s: %w", db.base, bare(err))
	}
	return resp, nil
}
