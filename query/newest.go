package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// What a query's own read asks for one by one. A direct get is answered by the
// goroutine that stores, behind all that it was given to store: on a busy server
// hundreds of milliseconds. A get through JetStream's API waits for one message.
const (
	// getsAtOnce are asked for together: what came in some 30 ms of a full pipeline.
	getsAtOnce = 32
	// getRounds follow one another at most; then the rest is read by direct get, which
	// costs the server less for each message.
	getRounds = 4
	// getTimeout bounds a round. Who may not ask so gets no answer at all, and asks so
	// again only after getPause.
	getTimeout = 2 * time.Second
	getPause   = time.Minute
)

// errNoGets: the server does not answer gets by its API.
var errNoGets = errors.New("no answer from JetStream's API")

// readNewest is readOn by gets: it gives add the messages of a place from a sequence on,
// in order, to the end as it stands after the call, and says with which sequence it is
// done. more says that it did not come to the end.
//
// Each get asks for the first message at or above a sequence. So when there was none at
// or above one, everything older than the call is below, and the gets for the sequences
// below have brought all of that.
func readNewest(ctx context.Context, r *Reader, at place, next uint64, add func(*message) error) (_ uint64, more bool, err error) {
	for range getRounds {
		found, end, err := r.getEach(ctx, at, next)
		if err != nil {
			return next, true, err
		}
		limit := next + uint64(end)
		for _, msg := range found[:end] {
			// One at or above the limit may have others before it that no get asked for.
			if msg.Sequence < next || msg.Sequence >= limit {
				continue
			}
			if err := add(&message{msg.Subject, msg.Header, msg.Sequence, len(msg.Data), msg}); err != nil {
				return next, true, err
			}
			next = msg.Sequence + 1
		}
		if end < getsAtOnce {
			return next, false, nil
		}
		next = max(limit, found[end-1].Sequence) // nothing lies between
	}
	return next, true, nil
}

// getEach asks for the first message of a place at or above each of getsAtOnce
// sequences. end is the first of them above which there was none, or getsAtOnce.
func (r *Reader) getEach(ctx context.Context, at place, from uint64) (found [getsAtOnce]*jetstream.RawStreamMsg, end int, err error) {
	ctx, cancel := context.WithTimeout(ctx, getTimeout)
	defer cancel()
	nc := r.js.Conn()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox + ".*")
	if err != nil {
		return found, 0, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	for i := range found {
		req, err := json.Marshal(getRequest{from + uint64(i), at.filter})
		if err == nil {
			err = nc.PublishRequest(schemas.GetSubject(at.stream), inbox+"."+strconv.Itoa(i), req)
		}
		if err != nil {
			return found, 0, err
		}
	}
	end = getsAtOnce
	for answered := 0; answered < end; {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return found, 0, fmt.Errorf("%w: %w", errNoGets, err)
		}
		i, err := strconv.Atoi(msg.Subject[len(inbox)+1:])
		if err != nil || i < 0 || i >= getsAtOnce {
			return found, 0, fmt.Errorf("query: an answer of %s came to %s", at.stream, msg.Subject)
		}
		if found[i], err = gotten(msg); err != nil {
			return found, 0, fmt.Errorf("query: message %d of %s: %w", from+uint64(i), at.stream, err)
		}
		switch {
		case found[i] == nil && i < end:
			// Those above count no more, and were counted perhaps.
			end, answered = i, 0
			for _, f := range found[:end] {
				if f != nil {
					answered++
				}
			}
		case i < end:
			answered++
		}
	}
	return found, end, nil
}

type getRequest struct {
	Seq    uint64 `json:"seq"`
	Filter string `json:"next_by_subj"`
}

// noMessage is JetStream's error for a message that is not there.
const noMessage = 10037

// gotten is the message of an answer, nil for none.
func gotten(msg *nats.Msg) (*jetstream.RawStreamMsg, error) {
	var answer struct {
		Error *struct {
			Code        int    `json:"code"`
			ErrCode     int    `json:"err_code"`
			Description string `json:"description"`
		} `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(msg.Data, &answer); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoGets, err)
	}
	switch e := answer.Error; {
	case e != nil && e.Code == http.StatusNotFound && e.ErrCode == noMessage:
		return nil, nil
	case e != nil:
		return nil, fmt.Errorf("%w: %s (%d)", errNoGets, e.Description, e.ErrCode)
	case answer.Message == nil:
		return nil, fmt.Errorf("%w: it has neither message nor error", errNoGets)
	}
	m := answer.Message
	out := &jetstream.RawStreamMsg{Subject: m.Subject, Sequence: m.Seq, Data: m.Data, Time: m.Time}
	if len(m.Header) > 0 {
		var err error
		if out.Header, err = nats.DecodeHeadersMsg(m.Header); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// gets says that the server may be asked by gets.
func (d *directory) gets(now time.Time) bool {
	return now.UnixNano()-d.getsFailed.Load() > int64(getPause)
}
