package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// end is how the server ended an answer.
type end struct {
	status
	stopped bool // by the caller
}

// direct sends a batched direct get for at most n messages and passes them on in
// order. Any replica answers it. Each message names the one that was sent before
// it, and the end names the last, so that one lost on the way shows: that, and an
// answer without an end, is ErrCut.
func direct(ctx context.Context, js jetstream.JetStream, stream string, req getRequest, n int, f func(*Message) (more bool, err error)) (end, error) {
	data, err := json.Marshal(req)
	if err != nil {
		return end{}, err
	}
	nc := js.Conn()
	inbox, answers := nc.NewInbox(), make(chan *nats.Msg, n+1)
	sub, err := nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return end{}, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest(apiSubject(js, "DIRECT.GET."+stream), inbox, data); err != nil {
		return end{}, err
	}
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for last := uint64(0); ; {
		var m *nats.Msg
		select {
		case m = <-answers:
		case <-ctx.Done():
			return end{}, cut(ctx, nil)
		case <-timer.C:
			return end{}, cut(ctx, fmt.Errorf("NATS was silent for %s", silence))
		}
		timer.Reset(silence)
		msg, s, err := parseDirect(m, stream)
		switch {
		case err != nil:
			return end{}, err
		case s.lastSeq != last && (msg != nil || s.code == statusEnd):
			return end{}, cut(ctx, fmt.Errorf("messages after %d got lost on the way", last))
		case msg != nil:
			last = msg.Sequence
			if more, err := f(msg); err != nil || !more {
				return end{stopped: true}, err
			}
		// A 404 names no last message, so it ends only an answer without any. A 413 is the caller's
		// to see: it asks for fewer then.
		case s.code == statusEnd, s.code == statusNone && last == 0, s.code == statusTooMany:
			return end{status: *s}, nil
		case s.code == statusNoResponders:
			return end{}, cut(ctx, nats.ErrNoResponders)
		default:
			return end{}, cut(ctx, errors.New("NATS answered "+s.code+" "+s.reason))
		}
	}
}
