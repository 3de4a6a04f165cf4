package tables

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/almanac-events/almanac/schemas"
)

// One address is one truth: the head of a shard is what one server has, so all statements of a
// cluster must reach the same one. An engine is named by an empty database on its disk
// (schemas.EngineDatabase), and the registry keeps the name of that which has the rows. Each
// request names it as its database. A server checks that before it runs anything, whatever the
// statement is, and refuses when it has no such database: so nothing is stored, dropped or
// counted on another server that answers at the address.
//
// A person's own SQL and clients of the relay name a database themselves and are not checked.

// Engines keeps which engine has a cluster's rows: the registry.
type Engines interface {
	// Engine is its identity, empty while none was chosen, and the entry's revision.
	Engine(ctx context.Context) (id string, rev uint64, err error)
	// SetEngine writes it over that revision.
	SetEngine(ctx context.Context, id string, rev uint64) error
}

// pin is which engine the requests of a DB are meant for.
type pin struct {
	mu      sync.Mutex
	engines Engines
	id      string        // empty: to be asked for
	doubted bool          // a server did not know it, and Establish was not called since
	refused error         // what Establish found instead
	decided chan struct{} // closed by the next Establish that succeeds; nil: none is waited for
	doubts  chan struct{} // has one when doubted was set
}

// MeantFor makes every request of the DB name the engine that has the cluster's rows.
func (db *DB) MeantFor(e Engines) {
	db.pin.mu.Lock()
	defer db.pin.mu.Unlock()
	db.pin.engines = e
}

// keeper is what keeps which engine has the rows.
func (p *pin) keeper() Engines {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.engines
}

// meant is the database that a request names, empty when there is nothing to go by: without
// Engines, and before the first engine was chosen.
func (db *DB) meant(ctx context.Context) (string, error) {
	p := &db.pin
	p.mu.Lock()
	engines, id, refused := p.engines, p.id, p.refused
	p.mu.Unlock()
	switch {
	case engines == nil:
		return "", nil
	case refused != nil:
		return "", refused
	case id == "":
		var err error
		if id, _, err = engines.Engine(ctx); err != nil || id == "" {
			return "", err
		}
		p.mu.Lock()
		p.id = id
		p.mu.Unlock()
	}
	return schemas.EngineDatabase(db.Database, id), nil
}

// doubt notes that a server did not know an engine: the registry is asked again.
func (p *pin) doubt(database string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == "" || !strings.HasSuffix(database, p.id) {
		return
	}
	p.id, p.doubted = "", true
	select {
	case p.doubts <- struct{}{}:
	default:
	}
}

// Doubted has a value after a server did not know the engine that it was taken for. One
// goroutine of a process reads it, and calls Establish.
func (db *DB) Doubted() <-chan struct{} { return db.pin.doubts }

// Established reports whether the engine is known, and nothing put it in doubt since.
func (db *DB) Established() bool {
	p := &db.pin
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.established()
}

func (p *pin) established() bool {
	return p.engines == nil || p.id != "" && p.refused == nil && !p.doubted
}

// conclude notes what Establish found.
func (p *pin) conclude(id string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil:
		p.id, p.refused, p.doubted = id, nil, false
		if p.decided != nil {
			close(p.decided)
			p.decided = nil
		}
	case errors.Is(err, ErrOtherEngine):
		p.id, p.refused = "", err
	}
}

// WaitEngine waits until Establish, which another goroutine calls, has found the right engine.
func (db *DB) WaitEngine(ctx context.Context) error {
	p := &db.pin
	p.mu.Lock()
	if p.established() {
		p.mu.Unlock()
		return nil
	}
	if p.decided == nil {
		p.decided = make(chan struct{})
	}
	settled := p.decided
	p.mu.Unlock()
	select {
	case <-settled:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask runs a statement over a new connection, on whichever server answers there.
func (db *DB) ask(ctx context.Context, database, statement string) (string, error) {
	at := db.base + "/"
	if database != "" {
		at += "?" + url.Values{paramDatabase: {database}}.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	req.Header.Set("X-ClickHouse-User", db.user)
	req.Header.Set("X-ClickHouse-Key", db.pass)
	resp, err := db.fresh.Do(req)
	if err != nil {
		return "", bare(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBytes))
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("ClickHouse at %s answered %s: %w", db.base, resp.Status, refusalText(resp.Header.Get("X-ClickHouse-Exception-Code"), string(text)))
	}
	return string(text), nil
}
