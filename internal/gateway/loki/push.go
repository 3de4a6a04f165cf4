package loki

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of a request.
const (
	// MaxEvents bounds the entries of one push.
	MaxEvents = 100_000
	// weight is how many bytes a byte of the body holds while it is decoded. The events
	// that come of it are counted beside it.
	weight = 2
	// maxShown bounds the refused entries that an answer names.
	maxShown = 10
)

// tenantHeader names the tenant of a push: here a topic.
const tenantHeader = "X-Scope-OrgID"

// Config of the input.
type Config struct {
	Pool *pool.Pool
	// Topic takes what names no topic by its path or its tenant.
	Topic string
}

// Input is the handler of a push. Its path may name a topic as {topic}.
type Input struct{ cfg Config }

// New prepares the input.
func New(cfg Config) *Input { return &Input{cfg} }

// ServeHTTP implements http.Handler. Success is 204 without a body; all else is text.
func (in *Input) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	err := in.serve(w, r)
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	request.Text(w, r, err)
}

func (in *Input) serve(w http.ResponseWriter, r *http.Request) error {
	req := in.cfg.Pool.Begin(pool.InputLoki)
	defer req.End()
	if err := req.Ready(r.Context()); err != nil {
		return err
	}
	to, err := in.target(r, req)
	if err != nil {
		return err
	}
	body, err := request.Body(w, r, req, weight)
	if err != nil {
		return err
	}
	p, err := decode(r, req, body, to.Topic())
	if err != nil {
		return err
	}
	for i := range p.Refused {
		to.Refuse(p.Refused[i].Err)
	}
	at := 0 // of p.Refused: both are in the order of the entries
	var refused refusals
	entry := 0
	for _, ev := range p.Events {
		for at < len(p.Refused) && p.Refused[at].Entry == entry {
			refused.add(entry, p.Refused[at].Err)
			at, entry = at+1, entry+1
		}
		if err := to.Add(ev); err != nil {
			refused.add(entry, err)
		}
		entry++
	}
	for ; at < len(p.Refused); at++ {
		refused.add(p.Refused[at].Entry, p.Refused[at].Err)
	}
	if req.Len() > 0 {
		if _, err := req.Store(r.Context()); err != nil {
			return err
		}
	}
	return refused.answer(p.Entries)
}

// target is the topic of the path, else of the tenant where it names one, else the
// input's own.
func (in *Input) target(r *http.Request, req *pool.Request) (*pool.Target, error) {
	if name := r.PathValue("topic"); name != "" {
		return req.To(r.Context(), name)
	}
	if name := r.Header.Get(tenantHeader); name != "" && name != in.cfg.Topic {
		to, err := req.To(r.Context(), name)
		if err == nil || !errors.Is(err, schemas.ErrUnknownTopic) && !errors.Is(err, schemas.ErrTopicName) {
			return to, err
		}
	}
	return req.To(r.Context(), in.cfg.Topic)
}

// decode reads a body by its type, and reserves what its events have.
func decode(r *http.Request, req *pool.Request, body []byte, topic *schemas.Topic) (p Push, err error) {
	o := Options{Topic: topic, MaxBytes: request.MaxBytes, MaxEvents: MaxEvents}
	switch kind := mediaType(r); kind {
	case "application/json", "":
		p, err = DecodeJSON(body, o)
	case "application/x-protobuf", "application/protobuf":
		if err := request.GrowSnappy(r.Context(), req, body, o.MaxBytes, weight); err != nil {
			return p, err
		}
		p, err = DecodeProtobuf(body, o)
	default:
		return p, request.Refuse(http.StatusUnsupportedMediaType, "unsupported_type",
			fmt.Sprintf("Content-Type %q is not known", kind), "send application/json or application/x-protobuf")
	}
	switch {
	case errors.Is(err, ErrTooLarge):
		return p, request.Refuse(http.StatusRequestEntityTooLarge, "too_large", err.Error(), "")
	case err != nil:
		return p, request.Refuse(http.StatusBadRequest, "bad_push", err.Error(), "")
	}
	return p, req.Grow(r.Context(), o.MaxBytes-p.space)
}

func mediaType(r *http.Request) string {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return r.Header.Get("Content-Type")
	}
	return kind
}

// refusals are the entries that were not taken; the first few are named.
type refusals struct {
	n     int
	named []string
}

func (f *refusals) add(entry int, err error) {
	if f.n++; len(f.named) < maxShown {
		f.named = append(f.named, fmt.Sprintf("entry %d: %v", entry+1, err))
	}
}

// answer is what the client is told; the other entries are stored.
func (f *refusals) answer(entries int) error {
	if f.n == 0 {
		return nil
	}
	return request.Refuse(http.StatusBadRequest, "refused",
		fmt.Sprintf("%d of %d entries refused, the others are stored: %s", f.n, entries, strings.Join(f.named, "; ")), "")
}
