package lokiread

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/query/logql"
)

// Bounds of tails.
const (
	// maxFollowed topics are followed at once for one client, and for others a third more (request.WithOthers): each is a consumer of
	// the stream, and a statement for each frame.
	maxFollowed = 64
	// pingEvery keeps a connection in what is between, and finds a client that is gone.
	pingEvery = 15 * time.Second
	// stallWait bounds how long a client may take for one message, and for the answer to a ping.
	stallWait = 30 * time.Second
	// reasonBytes are what a closing frame has room for.
	reasonBytes = 120
)

// tailMessage is what a client of a tail gets, in Loki's form.
type tailMessage struct {
	Streams       []*stream      `json:"streams"`
	Dropped       []droppedEntry `json:"dropped_entries,omitempty"`
	EncodingFlags []string       `json:"encodingFlags,omitempty"`
}

type droppedEntry struct {
	Labels    map[string]string `json:"labels"`
	Timestamp string            `json:"timestamp"`
}

// tail follows lines over a WebSocket. What is wrong with the request is answered before that opens.
func (a *API) tail(w http.ResponseWriter, r *http.Request) {
	who, scope := access.From(r.Context()), a.scope(r)
	if err := a.may(who, scope.Topic); err != nil {
		fail(w, err)
		return
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Connection", "Upgrade")
		w.Header().Set("Upgrade", "websocket")
		fail(w, &refusal{http.StatusUpgradeRequired, "tail is a WebSocket: open it as one, or ask query_range"})
		return
	}
	allowed, stop := a.whileAllowed(r.Context(), who, scope)
	defer stop()
	ctx, cancel := context.WithCancel(allowed)
	defer cancel()
	tail, err := a.open(ctx, r, scope)
	if lost := request.Lost(ctx); err != nil && lost != nil {
		err = &refusal{http.StatusUnauthorized, lost.Error()}
	}
	if err != nil {
		fail(w, named(r, scope, err))
		return
	}
	free, err := a.tails.TakeSome(request.HolderOf(r), max(tail.Topics(), 1))
	if err != nil {
		fail(w, &refusal{http.StatusServiceUnavailable, err.Error() + ": name one topic, or ask again later"})
		return
	}
	defer free()
	conn, err := websocket.Accept(w, r, nil) // which answers what it refuses: the handshake of a page of another origin too
	if err != nil {
		return
	}
	defer func() { _ = conn.CloseNow() }()
	defer a.cfg.OnTail.Followed(request.TailsOfLoki)()
	a.follow(ctx, cancel, conn, tail, comesApart(r))
}

// open reads parameters and the lines before.
func (a *API) open(ctx context.Context, r *http.Request, scope logql.Scope) (*logql.Tail, error) {
	q, err := logql.Parse(r.FormValue("query"))
	if err != nil {
		return nil, err
	}
	if q.Log == nil {
		return nil, badRequest("tail follows lines: the query is one for numbers")
	}
	req := &logql.TailRequest{Pipeline: q.Log, Since: time.Now().Add(-defaultSpan)}
	if text := r.FormValue("start"); text != "" {
		if req.Since, err = parseTime(text); err != nil {
			return nil, err
		}
	}
	if req.Limit, err = number(r, "limit", logql.DefaultLines, logql.MaxLines); err != nil {
		return nil, err
	}
	if text := r.FormValue("delay_for"); text != "" {
		s, err := strconv.Atoi(text)
		if most := int(logql.MaxDelay / time.Second); err != nil || s < 0 || s > most {
			return nil, badRequest("delay_for must be a number of seconds from 0 to %d, not %q", most, text)
		}
		req.Delay = time.Duration(s) * time.Second
	}
	free, err := a.slots.Queue(ctx, request.HolderOf(r))
	if err != nil {
		return nil, busy(err)
	}
	defer free()
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	return a.cfg.Engine.OpenTail(ctx, scope, req)
}

// follow writes lines until the client, its right or this process ends. A client whose right ended is told so. One that is cut off
// because this process stops is not: clients of Loki come back after a connection that broke off, and not after one that was closed.
func (a *API) follow(ctx context.Context, cancel context.CancelFunc, conn *websocket.Conn, tail *logql.Tail, apart bool) {
	gone := conn.CloseRead(context.WithoutCancel(ctx)) // a context that ended would end the connection without a word
	go func() {
		defer cancel()
		select {
		case <-a.cfg.Stopping:
		case <-gone.Done():
		case <-ctx.Done():
		}
	}()
	go func() {
		defer cancel()
		for range backoff.Ticks(ctx, pingEvery) {
			if ping(ctx, conn) != nil {
				return
			}
		}
	}()
	err := tail.Run(ctx, func(b logql.TailBatch) error { return send(ctx, conn, messageOf(b, apart)) })
	switch lost := request.Lost(ctx); {
	case lost != nil:
		_ = conn.Close(websocket.StatusPolicyViolation, reason(lost))
	case err != nil && ctx.Err() == nil:
		_ = conn.Close(websocket.StatusInternalError, reason(err))
	}
}

func ping(ctx context.Context, conn *websocket.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, stallWait)
	defer cancel()
	return conn.Ping(ctx)
}

func send(ctx context.Context, conn *websocket.Conn, m *tailMessage) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stallWait)
	defer cancel()
	return conn.Write(ctx, websocket.MessageText, text.Bytes())
}

// reason is an error in a closing frame.
func reason(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), reasonBytes)], "")
}

// messageOf writes lines in the order of their times. A stream in it is lines in a row that have their labels in common, so that one whose
// lines come between others comes several times: who shows a message from its beginning shows it in order, and the last line is the newest.
func messageOf(b logql.TailBatch, apart bool) *tailMessage {
	m := &tailMessage{Streams: []*stream{}}
	if apart {
		m.EncodingFlags = []string{categorized}
	}
	last := ""
	for _, e := range b.Entries {
		labels := labelsOf(e, apart)
		if key := logql.FormatLabels(labels); key != last || len(m.Streams) == 0 {
			m.Streams = append(m.Streams, &stream{Labels: labels})
			last = key
		}
		into := m.Streams[len(m.Streams)-1]
		into.Values = append(into.Values, valueOf(e, apart))
	}
	for _, d := range b.Dropped {
		m.Dropped = append(m.Dropped, droppedEntry{d.Labels, strconv.FormatInt(d.Ts, 10)})
	}
	return m
}
