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
	"strings"
	"sync/atomic"
	"time"
)

// A server, or the way to it, can vanish without a word: what is sent is lost and
// nothing answers, on connections that stand. TCP does not tell where something in
// between goes on acknowledging. So while a request is silent, its server is asked
// over a new connection whether it runs such a query. Where it answers, twice, that
// it knows of none, the request never arrived or its answer is lost: it ends with
// ErrVanished, and so do the idle connections of its time. Of an insert the head
// tells what became of it, as always; one that arrives after all meets its successor's
// query id, token and assertion.
//
// No answer to that question, or a refusal, says nothing, and the request waits for
// its own timeout.

const (
	// minSilence is far above what a server takes to begin a query; after a new
	// connection fell silent too, which a way that is only slow may look like, the next
	// is given twice as long, up to maxSilence.
	minSilence = 1500 * time.Millisecond
	maxSilence = 24 * time.Second
	// askEvery lies between two questions, askTime bounds one.
	askEvery = 500 * time.Millisecond
	askTime  = time.Second
)

// watchful is a transport whose requests end when their server vanished.
type watchful struct {
	db   *DB
	next *http.Transport
}

// RoundTrip is next's, under watch until the answer begins.
func (w *watchful) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	r := &request{header: req.Header, ended: make(chan struct{})}
	out := req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		r.reused.Store(c.Reused)
		r.moved()
	}}))
	if r.id = req.URL.Query().Get("query_id"); r.id == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails on the supported systems
		r.id = "almanac-" + hex.EncodeToString(b[:])
		u := *req.URL
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&query_id="+r.id, "&")
		out.URL = &u
	}
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = &watchedBody{req.Body, r}
	}
	go w.watch(ctx, r, cancel)
	resp, err := w.next.RoundTrip(out)
	close(r.ended)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrVanished) {
			err = cause
		}
		cancel(nil)
		return nil, err
	}
	w.db.silence.Store(int64(minSilence))
	resp.Body = &answerBody{resp.Body, cancel}
	return resp, nil
}

// watch ends a request whose server does not know of it.
func (w *watchful) watch(ctx context.Context, r *request, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for unknown := 0; unknown < 2; {
		select {
		case <-r.ended:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if r.silent() < w.db.patience() {
			unknown = 0
			continue
		}
		if runs, err := w.db.runs(ctx, r); runs || err != nil {
			unknown = 0
			continue
		}
		unknown++
	}
	select {
	case <-r.ended:
		return // its answer came meanwhile
	default:
	}
	if !r.reused.Load() {
		w.db.silence.Store(int64(min(2*w.db.patience(), maxSilence)))
	}
	cancel(fmt.Errorf("%w: silent for %s on a connection that stands", ErrVanished, r.silent().Round(100*time.Millisecond)))
	w.db.closeIdle()
}

// request is one under watch.
type request struct {
	id     string
	header http.Header
	last   atomic.Int64 // unix ns when it last moved; 0: it has no connection yet
	reused atomic.Bool  // its connection carried another before
	ended  chan struct{}
}

func (r *request) moved() { r.last.Store(time.Now().UnixNano()) }

// silent is for how long nothing of it was sent.
func (r *request) silent() time.Duration {
	last := r.last.Load()
	if last == 0 {
		return 0
	}
	return time.Since(time.Unix(0, last))
}

// runs asks the server, over a new connection and as the request's user, whether it
// runs the request.
func (db *DB) runs(ctx context.Context, r *request) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	q := url.Values{"query": {"SELECT count() FROM system.processes WHERE query_id = {id:String}"}, "param_id": {r.id}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, db.base+"/?"+q.Encode(), nil)
	if err != nil {
		return false, err
	}
	for _, h := range []string{"X-ClickHouse-User", "X-ClickHouse-Key", "Authorization"} {
		if v := r.header.Get(h); v != "" {
			req.Header.Set(h, v)
		}
	}
	resp, err := db.fresh.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 64))
	if err != nil {
		return false, err
	}
	switch strings.TrimSpace(string(text)) {
	case "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, fmt.Errorf("ClickHouse at %s answered %s", db.base, resp.Status)
}

// patience is how long a request may be silent before its server is asked.
func (db *DB) patience() time.Duration { return max(minSilence, time.Duration(db.silence.Load())) }

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

// CloseIdleConnections is for http.Client.
func (w *watchful) CloseIdleConnections() { w.next.CloseIdleConnections() }

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
