package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/gateway/request"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of reads.
const (
	maxTails   = 64
	maxSQL     = 16
	maxReads   = 64
	sqlBytes   = 1 << 20
	readWait   = 60 * time.Second
	writeStall = 30 * time.Second
)

// Config of the API.
type Config struct {
	Reader *query.Reader
	// Topics reads every descriptor.
	Topics func(ctx context.Context) ([]schemas.Topic, error)
	// User and Password are of an account that may only read; empty for the reader's own.
	User, Password string
	// Stopping is closed when tails are to end.
	Stopping <-chan struct{}
}

// API serves reads.
type API struct {
	cfg               Config
	tails, sql, reads chan struct{}
}

// New prepares the API.
func New(cfg Config) *API {
	return &API{cfg: cfg, tails: make(chan struct{}, maxTails), sql: make(chan struct{}, maxSQL), reads: make(chan struct{}, maxReads)}
}

// Add adds the paths.
func (a *API) Add(mux *http.ServeMux) {
	mux.HandleFunc("GET /v1/topics", a.read(func(ctx context.Context, _ *http.Request) (any, error) {
		topics, err := a.cfg.Topics(ctx)
		return map[string]any{"topics": topics}, err
	}))
	mux.HandleFunc("GET /v1/topics/{topic}/events", a.read(a.events))
	mux.HandleFunc("GET /v1/topics/{topic}/count", a.read(a.count))
	mux.HandleFunc("GET /v1/topics/{topic}/histogram", a.read(a.count))
	mux.HandleFunc("GET /v1/shards", a.read(func(ctx context.Context, r *http.Request) (any, error) {
		shards, err := a.cfg.Reader.Shards(ctx, r.URL.Query().Get("topic"), r.URL.Query().Get("month"))
		return map[string]any{"shards": shards}, err
	}))
	mux.HandleFunc("GET /v1/topics/{topic}/tail", a.tail)
	mux.HandleFunc("POST /v1/sql", a.runSQL)
}

// read is a handler whose answer is one JSON value.
func (a *API) read(f func(context.Context, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !take(a.reads) {
			request.Fail(w, r, tooMany("reads", maxReads))
			return
		}
		defer func() { <-a.reads }()
		ctx, cancel := context.WithTimeout(r.Context(), readWait)
		defer cancel()
		v, err := f(ctx, r)
		if err != nil {
			request.Fail(w, r, refusal(err))
			return
		}
		request.JSON(w, http.StatusOK, v)
	}
}

func take(slots chan struct{}) bool {
	select {
	case slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func tooMany(what string, n int) error {
	return request.Refuse(http.StatusTooManyRequests, "busy", fmt.Sprintf("%d %s are under way", n, what), "send the request again in a second")
}

// refusal is an error of package query for the client.
func refusal(err error) error {
	var own *request.Error
	switch {
	case errors.As(err, &own), errors.Is(err, schemas.ErrUnknownTopic), errors.Is(err, schemas.ErrTopicName):
		return err
	case errors.Is(err, schemas.ErrRequest):
		return request.Refuse(http.StatusBadRequest, "bad_request", err.Error(), "")
	case errors.Is(err, context.DeadlineExceeded):
		return request.Refuse(http.StatusGatewayTimeout, "too_slow", err.Error(), "narrow the read with from, to and where")
	}
	return request.Refuse(http.StatusServiceUnavailable, "unavailable", err.Error(), "send the request again; /readyz says what is wrong")
}

func (a *API) events(ctx context.Context, r *http.Request) (any, error) {
	q := r.URL.Query()
	req := query.Request{Topic: r.PathValue("topic"), Where: q.Get("where"), Cursor: q.Get("cursor"), Fields: names(q.Get("fields"))}
	var err error
	if req.From, req.To, err = span(q); err != nil {
		return nil, err
	}
	switch q.Get("order") {
	case "", "desc":
	case "asc":
		req.Ascending = true
	default:
		return nil, bad("order", q.Get("order"), "desc or asc")
	}
	if text := q.Get("limit"); text != "" {
		if req.Limit, err = strconv.Atoi(text); err != nil || req.Limit < 1 || req.Limit > query.MaxLimit {
			return nil, bad("limit", text, fmt.Sprintf("1 to %d", query.MaxLimit))
		}
	}
	return a.cfg.Reader.Query(ctx, req)
}

func (a *API) count(ctx context.Context, r *http.Request) (any, error) {
	q := r.URL.Query()
	req := query.TallyRequest{Topic: r.PathValue("topic"), Where: q.Get("where"), By: q.Get("by")}
	var err error
	if req.From, req.To, err = span(q); err != nil {
		return nil, err
	}
	if strings.HasSuffix(r.URL.Path, "/histogram") {
		if req.Step, err = time.ParseDuration(q.Get("step")); err != nil || req.Step <= 0 {
			return nil, bad("step", q.Get("step"), "a length of time such as 1m")
		}
	}
	return a.cfg.Reader.Tally(ctx, req)
}

func bad(name, text, want string) error {
	return request.Refuse(http.StatusBadRequest, "bad_parameter", fmt.Sprintf("parameter %s is %q, it must be %s", name, text, want), "")
}

// names are the fields between commas.
func names(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// span reads from and to: RFC 3339, or a distance back such as -15m.
func span(q url.Values) (from, to time.Time, err error) {
	for _, p := range []struct {
		name string
		at   *time.Time
	}{{"from", &from}, {"to", &to}} {
		text := q.Get(p.name)
		if text == "" {
			continue
		}
		if back, ok := strings.CutPrefix(text, "-"); ok {
			d, err := time.ParseDuration(back)
			if err != nil {
				return from, to, bad(p.name, text, "RFC 3339, or a distance back such as -15m")
			}
			*p.at = time.Now().Add(-d)
			continue
		}
		if *p.at, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return from, to, bad(p.name, text, "RFC 3339, or a distance back such as -15m")
		}
	}
	return from, to, nil
}
