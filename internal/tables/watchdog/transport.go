package watchdog

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

// Transport is one whose requests end when their server vanished, and fail at once while the breaker is open.
type Transport struct {
	Breaker   *Breaker
	Questions *Questioner
	// Engine returns the database that a request is to name which names none; empty: none.
	Engine func(ctx context.Context) (string, error)
	// Answered is given the answer's head of a request that names an engine's database.
	Answered func(engine string, head http.Header)
	Next     *http.Transport
}

// Parameters of a request.
const (
	// ParamDatabase names its database, and so its engine.
	ParamDatabase = "database"
	// ParamQueryID names its statement.
	ParamQueryID = "query_id"
	// ParamQuery has its statement, or the beginning.
	ParamQuery = "query"
)

// RoundTrip sends the request, under watch until its answer begins; a read whose server vanished twice.
func (w *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.send(req)
	if errors.Is(err, ErrVanished) {
		if once := again(req); once != nil {
			return w.send(once)
		}
	}
	return resp, err
}

func (w *Transport) send(req *http.Request) (*http.Response, error) {
	if err := w.Breaker.Check(req.Context()); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	params := req.URL.Query()
	engine, err := "", error(nil)
	if !params.Has(ParamDatabase) {
		if engine, err = w.Engine(req.Context()); err != nil {
			if req.Body != nil {
				_ = req.Body.Close()
			}
			return nil, err
		}
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	r := &request{cancel: cancel, reading: readingTime(req)}
	out := req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		r.reused.Store(c.Reused)
		r.moved()
	}}))
	u := *req.URL
	if r.id = params.Get(ParamQueryID); r.id == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails on the supported systems
		r.id = "almanac-" + hex.EncodeToString(b[:])
		u.RawQuery += "&" + ParamQueryID + "=" + r.id
	}
	if engine != "" {
		u.RawQuery += "&" + ParamDatabase + "=" + url.QueryEscape(engine)
	}
	u.RawQuery = strings.TrimPrefix(u.RawQuery, "&")
	out.URL = &u
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = &watchedBody{req.Body, r}
	}
	w.Questions.add(r)
	resp, err := w.Next.RoundTrip(out)
	r.ended.Store(true)
	w.Questions.remove(r)
	if err != nil {
		cause := context.Cause(ctx)
		cancel(nil)
		switch {
		case errors.Is(cause, ErrVanished):
			return nil, cause
		case errors.Is(err, context.Canceled):
			return nil, err // the caller gave up: says nothing about the server
		}
		w.Breaker.Failed(err)
		return nil, &Unanswered{err}
	}
	w.Questions.silence.Store(0)
	if engine != "" {
		w.Answered(engine, resp.Header)
	}
	resp.Body = &answerBody{resp.Body, cancel}
	return resp, nil
}

// readingTime is how long a server may read a request before it knows its statement.
func readingTime(req *http.Request) time.Duration {
	if !strings.HasPrefix(req.Header.Get("Content-Type"), "multipart/form-data") {
		return 0
	}
	return time.Duration(max(req.ContentLength, 0)) * time.Second / formRate
}

// CloseIdleConnections is for http.Client.
func (w *Transport) CloseIdleConnections() { w.Next.CloseIdleConnections() }

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
