package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
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
//
// Servers that elect give a request to a replica that was frozen as well, for minutes: until its connections
// count as dead. So where nothing came of an answer another is asked, which is twice as patient each time. The first
// few get the same time: with one frozen server of three, a ninth of the requests meets it twice in a row.
func direct(ctx context.Context, js jetstream.JetStream, stream string, req getRequest, n int, f func(*Message) (more bool, err error)) (end, error) {
	if !schemas.Elects(js.Conn()) {
		e, _, err := directOnce(ctx, js, stream, req, n, silence, f)
		return e, err
	}
	began := time.Now()
	for patient, asked := askedAgain, 1; ; asked++ {
		e, begun, err := directOnce(ctx, js, stream, req, n, patient, f)
		if begun || !errors.Is(err, ErrCut) || ctx.Err() != nil || time.Since(began)+noLeaderPause >= elected {
			return e, err
		}
		if errors.Is(err, nats.ErrNoResponders) {
			patient, asked = askedAgain, 0 // it did not wait
			if err := wait(ctx, noLeaderPause); err != nil {
				return e, err
			}
		}
		if asked >= alike {
			patient = min(2*patient, silence)
		}
	}
}

// directOnce asks one replica, and waits so long for the first message. begun: something of the answer came.
func directOnce(ctx context.Context, js jetstream.JetStream, stream string, req getRequest, n int, patient time.Duration, f func(*Message) (more bool, err error)) (_ end, begun bool, err error) {
	data, err := json.Marshal(req)
	if err != nil {
		return end{}, begun, err
	}
	nc := js.Conn()
	inbox, answers := nc.NewInbox(), make(chan *nats.Msg, n+1)
	sub, err := nc.ChanSubscribe(inbox, answers)
	if err != nil {
		return end{}, begun, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	asked, done := untilDenied(about(ctx, js, "DIRECT.GET."+stream))
	defer func() {
		if denied := done(err); !begun { // what breaks off in the middle was not denied
			err = denied
		}
	}()
	if err := nc.PublishRequest(apiSubject(js, "DIRECT.GET."+stream), inbox, data); err != nil {
		return end{}, begun, err
	}
	timer := time.NewTimer(patient)
	defer timer.Stop()
	for last := uint64(0); ; {
		waits := asked.Done()
		if begun { // what is denied by now is another question
			waits = ctx.Done()
		}
		var m *nats.Msg
		select {
		case m = <-answers:
		case <-waits:
			return end{}, begun, cut(ctx, nil)
		case <-timer.C:
			return end{}, begun, cut(ctx, fmt.Errorf("NATS was silent for %s", patient))
		}
		patient = silence
		timer.Reset(patient)
		msg, s, err := parseDirect(m, stream)
		begun = begun || err != nil || msg != nil || s.code != statusNoResponders
		switch {
		case err != nil:
			return end{}, begun, err
		case s.lastSeq != last && (msg != nil || s.code == statusEnd):
			return end{}, begun, cut(ctx, fmt.Errorf("messages after %d got lost on the way", last))
		case msg != nil:
			last = msg.Sequence
			if more, err := f(msg); err != nil || !more {
				return end{stopped: true}, begun, err
			}
		// A 404 names no last message, so it ends only an answer without any. A 413 is the caller's
		// to see: it asks for fewer then.
		case s.code == statusEnd, s.code == statusNone && last == 0, s.code == statusTooMany:
			return end{status: *s}, begun, nil
		case s.code == statusNoResponders:
			return end{}, begun, cut(ctx, nats.ErrNoResponders)
		default:
			return end{}, begun, cut(ctx, errors.New("NATS answered "+s.code+" "+s.reason))
		}
	}
}
