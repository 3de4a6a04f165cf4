package tables

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
)

// A server, or the way to it, can vanish without a word: what is sent is lost and
// nothing answers, on connections that stay open. TCP does not report it where
// something in between keeps acknowledging. So the requests of a DB that are silent are
// asked about over a new connection: does the server run them? Where it answers twice
// that it does not know one, that request never arrived or its answer is lost. It ends
// with ErrVanished, and so do the idle connections of its time. Of an insert the head
// tells what became of it; one that arrives late meets its successor's query id, token
// and assertion.
//
// A slow server is silent too, and questions must not make it slower. So there is one
// question at a time for all silent requests of a DB, and none while one is unanswered.
// After a question without an answer the next waits twice as long, and for twice as
// long. No answer, or a refusal, proves nothing: the request waits for its own timeout.

const (
	// minSilence is far above what a server takes to begin a query. When a new
	// connection fell silent too, which may be only a slow way, the next gets twice as
	// long, up to maxSilence.
	minSilence = 1500 * time.Millisecond
	maxSilence = 24 * time.Second
	// askEvery is the pause before a question, askTime bounds one. Both double while
	// there is no answer, up to maxAskEvery and maxAskTime: a silent server gets two
	// questions a minute from a process.
	askEvery    = 500 * time.Millisecond
	maxAskEvery = 30 * time.Second
	askTime     = time.Second
	maxAskTime  = 10 * time.Second
)

// questioner asks a server about the requests that are silent.
type questioner struct {
	// ask returns which of the ids the server runs.
	ask func(ctx context.Context, ids []string) (map[string]bool, error)
	// vanished is called after requests were ended.
	vanished func()
	closed   chan struct{} // ends run

	silence atomic.Int64 // ns; 0: minSilence

	mu       sync.Mutex
	requests map[*request]struct{}
	running  bool
}

func (q *questioner) add(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.requests == nil {
		q.requests = map[*request]struct{}{}
	}
	q.requests[r] = struct{}{}
	if !q.running {
		q.running = true
		go q.run()
	}
}

func (q *questioner) remove(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.requests, r)
}

// minSilent returns how long a request may be silent before its server is asked.
func (q *questioner) minSilent() time.Duration {
	return max(minSilence, time.Duration(q.silence.Load()))
}

// silent returns the requests to ask about. alive is false when no request is under way
// at all: then run ends, and the next request starts it again.
func (q *questioner) silent() (some []*request, alive bool) {
	least := q.minSilent()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.requests) == 0 {
		q.running = false
		return nil, false
	}
	for r := range q.requests {
		if r.silent() >= least {
			some = append(some, r)
		} else {
			r.unknown = 0
		}
	}
	return some, true
}

// run asks while any request is under way.
func (q *questioner) run() {
	pause, limit := askEvery, askTime
	failed := backoff.Backoff{Least: 2 * askEvery, Most: maxAskEvery}
	for {
		select {
		case <-time.After(pause):
		case <-q.closed:
			return
		}
		some, alive := q.silent()
		if !alive {
			return
		}
		if len(some) == 0 {
			pause = askEvery
			continue
		}
		ids := make([]string, len(some))
		for i, r := range some {
			ids[i] = r.id
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		began := time.Now()
		runs, err := q.ask(ctx, ids)
		cancel()
		if err != nil {
			pause, limit = failed.Next(), min(2*limit, maxAskTime)
			continue
		}
		// A server that took long for this answer may take as long for the next.
		failed.Reset()
		pause, limit = askEvery, min(max(askTime, 2*time.Since(began)), maxAskTime)
		q.answered(some, runs)
	}
}

// answered ends the requests of which the server denied twice that it runs them.
func (q *questioner) answered(some []*request, runs map[string]bool) {
	var lost []*request
	for _, r := range some {
		if runs[r.id] {
			r.unknown = 0
			continue
		}
		if r.unknown++; r.unknown >= 2 && !r.ended.Load() {
			lost = append(lost, r)
		}
	}
	for _, r := range lost {
		if !r.reused.Load() {
			q.silence.Store(int64(min(2*q.minSilent(), maxSilence)))
		}
		r.cancel(fmt.Errorf("%w: silent for %s on an open connection", ErrVanished, r.silent().Round(100*time.Millisecond)))
	}
	if len(lost) > 0 {
		q.vanished()
	}
}

// request is one that waits for its answer.
type request struct {
	id      string
	cancel  context.CancelCauseFunc
	last    atomic.Int64 // unix ns when it last moved; 0: it has no connection yet
	reused  atomic.Bool  // its connection carried another before
	ended   atomic.Bool
	unknown int // answers since it moved that the server does not run it; the questioner's
}

func (r *request) moved() { r.last.Store(time.Now().UnixNano()) }

// silent returns for how long nothing of the request was sent.
func (r *request) silent() time.Duration {
	last := r.last.Load()
	if last == 0 {
		return 0
	}
	return time.Since(time.Unix(0, last))
}

// watchful is a transport whose requests end when their server vanished, and fail at
// once while the breaker is open.
type watchful struct {
	db   *DB
	next *http.Transport
}

// paramDatabase is the parameter of a request that names its database, and so its engine;
// paramQuery has the statement, or its beginning.
const (
	paramDatabase = "database"
	paramQuery    = "query"
)

// RoundTrip sends the request, under watch until its answer begins.
func (w *watchful) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.db.breaker.check(req.Context()); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	params := req.URL.Query()
	engine, err := "", error(nil)
	if !params.Has(paramDatabase) {
		if engine, err = w.db.meant(req.Context()); err != nil {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	r := &request{cancel: cancel}
	out := req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		r.reused.Store(c.Reused)
		r.moved()
	}}))
	u := *req.URL
	if r.id = params.Get("query_id"); r.id == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails on the supported systems
		r.id = "almanac-" + hex.EncodeToString(b[:])
		u.RawQuery += "&query_id=" + r.id
	}
	if engine != "" {
		u.RawQuery += "&" + paramDatabase + "=" + url.QueryEscape(engine)
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery, "&")
	out.URL = &u
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = &watchedBody{req.Body, r}
	}
	w.db.questions.add(r)
	resp, err := w.next.RoundTrip(out)
	r.ended.Store(true)
	w.db.questions.remove(r)
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		switch {
		case errors.Is(cause, ErrVanished):
			return nil, cause
		case errors.Is(err, context.Canceled):
			return nil, err // the caller gave up: says nothing about the server
		}
		w.db.breaker.failed(err)
		return nil, &unreachable{err}
	}
	w.db.questions.silence.Store(0)
	if engine != "" && resp.Header.Get("X-ClickHouse-Exception-Code") == strconv.Itoa(codeUnknownDB) {
		w.db.pin.doubt(engine)
	}
	resp.Body = &answerBody{resp.Body, cancel}
	return resp, nil
}

// CloseIdleConnections is for http.Client.
func (w *watchful) CloseIdleConnections() { w.next.CloseIdleConnections() }

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
	return &watchful{db, db.plain}
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

// watchedBody notes when more of a request's body is taken.
type watchedBody struct {
	io.ReadCloser
	r *request
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.r.moved()
	return b.ReadCloser.Read(p)
}

// answerBody ends its request's context when it is closed.
type answerBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b *answerBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}
