package elastic

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of a request.
const (
	// MaxItems bounds the items of one bulk request.
	MaxItems = 100_000
	// weight is how many bytes a byte of the body holds while it is decoded and taken.
	weight = 3
	// unknownBytes is reserved for a body that does not say its size; reading it
	// reserves the rest.
	unknownBytes = 64 << 10
)

// Config of the input.
type Config struct {
	Pool *pool.Pool
}

// Input is the handler of every path of Elasticsearch that is answered. Strip a prefix
// before it.
type Input struct {
	cfg Config
	ids schemas.IDSource
}

// New prepares the input.
func New(cfg Config) *Input { return &Input{cfg: cfg} }

// ServeHTTP implements http.Handler.
func (in *Input) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(ProductHeader, Product)
	path := strings.Trim(r.URL.Path, "/")
	if index, ok := bulkIndex(path); ok && (r.Method == http.MethodPost || r.Method == http.MethodPut) {
		in.bulk(w, r, index)
		return
	}
	if path == "_cat/health" && !wantsJSON(r) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		_, _ = w.Write([]byte(PlainHealth()))
		return
	}
	if body, ok := Probe(r.Method, "/"+path); ok {
		answer(w, r, http.StatusOK, Text(body))
		return
	}
	fail(w, r, &Error{http.StatusBadRequest, "illegal_argument_exception",
		"no handler found for uri [" + r.URL.Path + "] and method [" + r.Method + "]: this is Almanac, which takes _bulk"})
}

// bulkIndex reads _bulk, {index}/_bulk, and {index}/{type}/_bulk of old clients.
func bulkIndex(path string) (index string, ok bool) {
	before, ok := strings.CutSuffix(path, "_bulk")
	if !ok || before == "" {
		return "", ok
	}
	index, kind, _ := strings.Cut(strings.TrimSuffix(before, "/"), "/")
	return index, strings.HasSuffix(before, "/") && !strings.Contains(kind, "/")
}

func wantsJSON(r *http.Request) bool {
	return r.URL.Query().Get("format") == "json" || strings.Contains(r.Header.Get("Accept"), "json")
}

// bulk answers 200 with one entry for each item wherever the items can be read, so
// that clients send those again that were not taken: an error of the whole request
// makes some of them end or lose it.
func (in *Input) bulk(w http.ResponseWriter, r *http.Request, index string) {
	began := time.Now()
	req := in.cfg.Pool.Begin(pool.InputElastic)
	defer req.End()
	if err := in.cfg.Pool.Asked(r.Context()); err != nil {
		fail(w, r, err)
		return
	}
	body, err := readBody(w, r, req)
	if err != nil {
		fail(w, r, err)
		return
	}
	ready := req.Ready(r.Context())
	var broken, unknown error // of who asks
	denied := map[string]error{}
	items, err := Decode(body, Options{Index: index, MaxItems: MaxItems, Topic: func(name string) *schemas.Topic {
		if ready != nil || broken != nil {
			return nil
		}
		to, err := req.To(r.Context(), name)
		switch {
		case err == nil:
			return to.Topic()
		case pool.Status(err) == http.StatusUnauthorized:
			unknown = err
		case pool.Status(err) == http.StatusForbidden:
			denied[name] = err
		case !errors.Is(err, schemas.ErrUnknownTopic) && !errors.Is(err, schemas.ErrTopicName):
			broken = err
		}
		return nil
	}})
	if err != nil {
		fail(w, r, err)
		return
	}
	if unknown != nil {
		fail(w, r, unknown)
		return
	}
	for i := range items {
		if items[i].Err == nil {
			continue
		}
		for _, name := range Names(items[i].Index) {
			if err := denied[name]; err != nil {
				items[i].Err = Denied(err)
			}
		}
	}
	for i := range items {
		if items[i].Err != nil {
			req.Refuse("", items[i].Err)
		}
	}
	if ready == nil {
		ready = broken
	}
	if ready == nil {
		ready = in.store(r.Context(), req, items)
	}
	if ready != nil {
		busy(items, ready)
		request.Retry(w, ready)
	}
	answer(w, r, http.StatusOK, AppendResponse(nil, time.Since(began), items))
}

// store takes the events of all good items, and returns when they are stored. An event
// that breaks a limit refuses its item.
func (in *Input) store(ctx context.Context, req *pool.Request, items []Item) error {
	now := time.Now().UnixNano()
	for i := range items {
		it := &items[i]
		if it.Err != nil {
			continue
		}
		to, err := req.To(ctx, it.Topic)
		if err != nil {
			return err
		}
		it.Event.ID = in.ids.Next(now)
		if err := to.Add(it.Event); err != nil {
			it.Err = Invalid(err)
		}
	}
	if req.Len() == 0 {
		return nil
	}
	_, err := req.Store(ctx)
	return err
}

// busy refuses the items that are not refused already. Those of unknown outcome may
// be stored twice then: without an answer they might not be stored at all.
func busy(items []Item, why error) {
	for i := range items {
		if it := &items[i]; it.Err == nil || it.Err.Status == http.StatusNotFound {
			it.Err = Busy(why.Error())
		}
	}
}

// readBody reads a body for which there is room. It waits as long for other requests
// as for the stream: a refusal of the whole request makes clients lose it.
func readBody(w http.ResponseWriter, r *http.Request, req *pool.Request) ([]byte, error) {
	known := r.ContentLength > 0 && r.ContentLength <= request.MaxWireBytes && r.Header.Get("Content-Encoding") == ""
	size := unknownBytes
	if known {
		size = int(r.ContentLength) + 1
	}
	err := req.Grow(r.Context(), size*weight)
	for began := time.Now(); errors.Is(err, pool.ErrBusy) && time.Since(began) < pool.Hold; {
		err = req.Grow(r.Context(), size*weight) // which waits
	}
	if err != nil {
		return nil, err
	}
	if known {
		return request.Body(w, r, req, 0)
	}
	return request.Body(w, r, req, weight)
}

// fail answers a request that is refused as a whole.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	var own *Error
	switch {
	case errors.As(err, &own):
	case errors.Is(err, ErrTooLarge):
		own = &Error{http.StatusRequestEntityTooLarge, "illegal_argument_exception", err.Error()}
	case errors.Is(err, ErrBulk):
		own = &Error{http.StatusBadRequest, "illegal_argument_exception", err.Error()}
	default:
		request.Retry(w, err)
		e := request.ErrorOf(r, err)
		own = &Error{e.Status, kindOf(e.Status), e.Message}
	}
	answer(w, r, own.Status, AppendError(nil, own))
}

func kindOf(status int) string {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return "es_rejected_execution_exception"
	case http.StatusRequestEntityTooLarge:
		return "content_too_long_exception"
	}
	return "illegal_argument_exception"
}

func answer(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	w.Header().Set("Content-Type", ContentType(r.Header.Get("Accept")))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) //nolint:gosec // JSON that we encoded, never HTML; a client that is gone cannot be told
}
