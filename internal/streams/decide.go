package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Decide reads are for what a decision hangs on: a checkpoint, the end of a shard,
// an entry before it is changed. The stream's leader answers them, so that neither
// a replica that lags nor one that is stuck is believed. A message that does not
// exist is jetstream.ErrMsgNotFound, by the leader's word.

// DecideAt reads the message with a sequence.
func DecideAt(ctx context.Context, js jetstream.JetStream, stream string, seq uint64) (*Message, error) {
	if seq == 0 {
		return nil, jetstream.ErrMsgNotFound
	}
	return decide(ctx, js, stream, getRequest{Seq: seq})
}

// DecideNext reads the first message of a filter at or after a sequence.
func DecideNext(ctx context.Context, js jetstream.JetStream, stream, filter string, from uint64) (*Message, error) {
	return decide(ctx, js, stream, getRequest{Seq: max(from, 1), NextFor: filter})
}

// DecideLast reads the last message of a subject.
func DecideLast(ctx context.Context, js jetstream.JetStream, stream, subject string) (*Message, error) {
	return decide(ctx, js, stream, getRequest{LastFor: subject})
}

// DecideLastAlone is DecideLast of a stream that one server alone holds, by a direct get: that server is the leader, and
// its answer is the message as it was stored, without JSON and base64 around it. Where the answer does not tell the
// server's headers from the publisher's, or another stream gave it, the leader is asked. It is asked too where there is no
// message: a mirror of the stream answers direct gets as well, and may not have it yet. The caller
// knows from the stream's info that the server is alone (Alone).
func DecideLastAlone(ctx context.Context, js jetstream.JetStream, stream, subject string) (*Message, error) {
	data, err := json.Marshal(getRequest{LastFor: subject})
	if err != nil {
		return nil, err
	}
	tail := "DIRECT.GET." + stream
	asked := apiSubject(js, tail)
	msg, err := Asked(about(ctx, js, tail), js.Conn(), func(ctx context.Context) (*Message, error) {
		answer, err := js.Conn().RequestWithContext(ctx, asked, data)
		if err != nil {
			return nil, err
		}
		return parseAlone(answer, stream)
	})
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, errUnclear) || errors.Is(err, nats.ErrNoResponders) || err == nil && msg.Subject != subject {
		return DecideLast(ctx, js, stream, subject)
	}
	return msg, err
}

// Alone reports whether one server alone holds a stream: it is of no cluster, so it cannot share the stream with others.
func Alone(nc *nats.Conn, info *jetstream.StreamInfo) bool {
	return !schemas.Elects(nc) && info.Config.Replicas <= 1 && (info.Cluster == nil || info.Cluster.Name == "" && len(info.Cluster.Replicas) == 0)
}

// getRequest is one of a leader's single messages, or of a replica's batch.
type getRequest struct {
	Seq      uint64   `json:"seq,omitempty"` // the first that is given, also of last messages
	NextFor  string   `json:"next_by_subj,omitempty"`
	LastFor  string   `json:"last_by_subj,omitempty"`
	LastOf   []string `json:"multi_last,omitempty"`
	Batch    int      `json:"batch,omitempty"`
	MaxBytes int      `json:"max_bytes,omitempty"`
}

func decide(ctx context.Context, js jetstream.JetStream, stream string, req getRequest) (*Message, error) {
	data, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	subject := apiSubject(js, "STREAM.MSG.GET."+stream)
	msg, err := Asked(about(ctx, js, "STREAM.MSG.GET."+stream), js.Conn(), func(ctx context.Context) (*Message, error) {
		answer, err := js.Conn().RequestWithContext(ctx, subject, data)
		if err != nil {
			return nil, err
		}
		return parseStored(answer.Data)
	})
	if err != nil {
		return nil, err
	}
	return decided(ctx, js, stream, msg)
}

// decided completes the leader's answer. Its JSON holds U+FFFD for bytes of a subject
// that are not UTF-8, so such a subject is read again, through a consumer.
func decided(ctx context.Context, js jetstream.JetStream, stream string, msg *Message) (*Message, error) {
	if !strings.ContainsRune(msg.Subject, utf8.RuneError) {
		return msg, nil
	}
	p, err := newPuller(ctx, js, stream, Range{From: msg.Sequence, HeadersOnly: true}, 1)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := p.request(pullRequest{Batch: 1, NoWait: true}); err != nil {
		return nil, err
	}
	m, _, err := p.next(ctx, silence)
	switch {
	case err != nil:
		return nil, err
	case m == nil || m.Sequence != msg.Sequence:
		return nil, cut(ctx, fmt.Errorf("message %d of %s could not be read again", msg.Sequence, stream))
	}
	msg.Subject = m.Subject
	return msg, nil
}

// unanswered turns the error of a request that NATS did not answer into ErrCut,
// which says what to do. It returns another error as it is.
func unanswered(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) || err != nil && ctx.Err() != nil {
		return cut(ctx, err)
	}
	return err
}

// cut is the error of an answer that did not come, or not whole.
func cut(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		if !errors.Is(cause, context.DeadlineExceeded) {
			return errors.Join(ErrCut, cause)
		}
		err = cause
	}
	return fmt.Errorf("%w: %w; `almanac doctor` shows how NATS fares, then run this again", ErrCut, err)
}
