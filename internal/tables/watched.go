package tables

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/tables/watchdog"
)

// Hooks report what happens to the way to ClickHouse.
type Hooks = watchdog.Hooks

// SetHooks sets what is called when the server goes away and comes back.
func (db *DB) SetHooks(h Hooks) {
	db.breaker.SetHooks(h)
}

// Wait waits while the server is away, until ctx ends. away reports whether it was.
// After a request that got no answer (Unreachable) it asks the server first.
func (db *DB) Wait(ctx context.Context) (away bool, err error) { return db.breaker.Wait(ctx) }

// Returned reports whether err says that the server is away, or is another, and it answers
// again: it waits for that. Hooks report it, once for all, and Establish, which another goroutine
// must call.
func (db *DB) Returned(ctx context.Context, err error) bool {
	switch Classify(err) {
	case Unreachable:
		away, err := db.Wait(ctx)
		return away && err == nil
	case Elsewhere:
		return db.WaitEngine(ctx) == nil
	}
	return false
}

const (
	paramDatabase = watchdog.ParamDatabase
	paramQuery    = watchdog.ParamQuery
	paramQueryID  = watchdog.ParamQueryID
)

// watch returns a transport like t under watch.
func (db *DB) watch(t *http.Transport) *watchdog.Transport {
	return &watchdog.Transport{Breaker: &db.breaker, Questions: &db.questions, Engine: db.meant, Next: t, Answered: func(engine string, head http.Header) {
		if head.Get("X-ClickHouse-Exception-Code") == strconv.Itoa(codeUnknownDB) {
			db.pin.doubt(engine)
		}
	}}
}

// runs asks the server which of the query ids it runs.
func (db *DB) runs(ctx context.Context, ids []string) (map[string]bool, error) {
	var q strings.Builder
	q.WriteString("SELECT query_id FROM system.processes WHERE query_id IN (")
	for i, id := range ids {
		if i > 0 {
			q.WriteByte(',')
		}
		q.WriteString("'" + literal.Replace(id) + "'")
	}
	q.WriteString(") FORMAT TSVRaw")
	// Another server that answers does not run them, which proves nothing.
	engine, err := db.meant(ctx)
	if err != nil {
		return nil, err
	}
	text, err := db.ask(ctx, engine, q.String())
	if err != nil {
		return nil, err
	}
	running := map[string]bool{}
	for id := range strings.Lines(text) {
		running[strings.TrimSuffix(id, "\n")] = true
	}
	return running, nil
}

// literal escapes what a string in SQL may not hold as it is.
var literal = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// Answers asks the server whether it is there, whatever else is not: neither its account nor the registry is needed.
func (db *DB) Answers(ctx context.Context) error { return db.ping(ctx) }

// ping asks the server, over a new connection, whether it is there. It needs no account
// and runs no query. Any answer will do but one that a proxy gives for a server that is
// away.
func (db *DB) ping(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, db.base+"/ping", nil)
	if err != nil {
		return err
	}
	resp, err := db.fresh.Do(req)
	if err != nil {
		return bare(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("it answered %s", resp.Status)
	}
	return nil
}

// watched is a transport like t under watch. clickhouse-go makes one for each of its
// connections; here they share the first, so that all that are idle can be closed.
func (db *DB) watched(t *http.Transport) http.RoundTripper {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.plain == nil {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = maxConns, maxConns
		db.plain = t
	}
	return db.watch(db.plain)
}

// closeIdle closes the connections that carry nothing now.
func (db *DB) closeIdle() {
	db.http.CloseIdleConnections()
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.plain != nil {
		db.plain.CloseIdleConnections()
	}
}
