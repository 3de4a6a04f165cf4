package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
)

// HeaderPosition is where a tail begins: a client whose tail is cut before its first event goes on from there.
const HeaderPosition = "Almanac-Position"

// beatEvery is how often a tail without events says that it is there, after it said so at once.
const beatEvery = 15 * time.Second

// addTail adds the tail.
func (a *API) addTail(on routes) { on.serve(&operations.Tail, a.tail) }

// whenStopping calls f once the gateway stops, or returns when ctx ends.
func (a *API) whenStopping(ctx context.Context, f func()) {
	select {
	case <-a.cfg.Stopping:
		f()
	case <-ctx.Done():
	}
}

// tail follows a topic as server-sent events, or as NDJSON where the client accepts that.
func (a *API) tail(w http.ResponseWriter, r *http.Request) {
	free, err := a.tails.Take(request.HolderOf(r))
	if err != nil {
		request.Fail(w, r, busy(err))
		return
	}
	defer free()
	var beats sync.WaitGroup
	defer beats.Wait() // nothing may be written once this returned
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go a.whenStopping(ctx, cancel)
	p := paramsOf(r)
	req := query.TailRequest{Topic: r.PathValue("topic"), Where: p.text("where"), Fields: p.names("fields"), From: p.text("from_pos"), Since: p.time("since")}
	if err := p.end(); err != nil {
		request.Fail(w, r, err)
		return
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		req.From = last
	}
	out := &stream{w: w, rc: http.NewResponseController(w), sse: !strings.Contains(r.Header.Get("Accept"), "ndjson")}
	ended := func() {}
	defer func() { ended() }()
	req.Placed = func(pos string) error {
		ended = a.cfg.OnTail.Followed(request.TailsOfAPI)
		w.Header().Set(HeaderPosition, pos)
		beats.Go(func() { out.beat(ctx, cancel) })
		return out.write(out.start(pos))
	}
	err = a.cfg.Reader.Tail(ctx, req, out.event)
	lost := request.Lost(ctx)
	if lost == nil && (err == nil || ctx.Err() != nil) {
		return
	}
	if lost != nil {
		err = lost
	}
	if !out.begin() {
		request.Fail(w, r, a.refusal(err))
		return
	}
	panic(http.ErrAbortHandler) // half an answer must not look whole
}

// stream is an answer under way. Its mutex keeps events and beats apart.
type stream struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	rc    *http.ResponseController
	sse   bool
	begun bool
	ended bool // an error is answered, and nothing else may be written
}

// begin reports whether anything was written, and keeps anything else from it.
func (s *stream) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.begun
}

func (s *stream) event(pos string, event json.RawMessage) error {
	if s.sse {
		return s.write(fmt.Sprintf("id: %s\ndata: %s\n\n", pos, event))
	}
	text := strings.TrimSuffix(string(event), "}")
	return s.write(fmt.Sprintf("%s,\"_pos\":%q}\n", text, pos))
}

// start is what a tail begins with: for clients of server-sent events the id that they resume with.
func (s *stream) start(pos string) string {
	if s.sse {
		return ": tail\nid: " + pos + "\n\n"
	}
	return s.comment("")
}

// comment is what says nothing of events: an empty line in NDJSON.
func (s *stream) comment(text string) string {
	if s.sse {
		return ": " + text + "\n\n"
	}
	return "\n"
}

// beat tells a client, and everything between, that the tail is there.
func (s *stream) beat(ctx context.Context, cancel context.CancelFunc) {
	for range backoff.Ticks(ctx, beatEvery) {
		if s.write(s.comment("beat")) != nil {
			cancel()
			return
		}
	}
}

func (s *stream) write(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return context.Canceled
	}
	if !s.begun {
		s.begun = true
		request.Streams(s.w)
		contentType := "application/x-ndjson"
		if s.sse {
			contentType = "text/event-stream"
		}
		s.w.Header().Set("Content-Type", contentType)
		s.w.Header().Set("Cache-Control", "no-store")
		s.w.WriteHeader(http.StatusOK)
	}
	if _, err := io.WriteString(s.w, text); err != nil {
		return err
	}
	return s.rc.Flush()
}
