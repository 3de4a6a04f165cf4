package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// getRequest is one of a leader's single messages, or of a replica's batch.
type getRequest struct {
	Seq      uint64   `json:"seq,omitempty"` // the first that is given, also of last messages
	NextFor  string   `json:"next_by_subj,omitempty"`
	LastFor  string   `json:"last_by_subj,omitempty"`
	LastOf   []string `json:"multi_last,omitempty"`
	Batch    int      `json:"batch,omitempty"`
	MaxBytes int      `json:"max_bytes,omitempty"`
}

const (
	// silence is how long the server may be silent before its answer counts as cut:
	// five times the second after which nats.go gives a fetch up.
	silence = 5 * time.Second
	// tries is how often a cut answer is asked for again, from where it was cut.
	tries = 2
)

func decide(ctx context.Context, js jetstream.JetStream, stream string, req getRequest) (*Message, error) {
	data, err := json.Marshal(req)
	if err != nil {
		return nil, err
	}
	subject := apiSubject(js, "STREAM.MSG.GET."+stream)
	for range tries {
		asked, done := bounded(ctx)
		answer, e := js.Conn().RequestWithContext(asked, subject, data)
		if e = done(e); e == nil {
			return decided(ctx, js, stream, answer.Data)
		}
		if errors.Is(e, ErrDenied) {
			return nil, e
		}
		if err = e; ctx.Err() != nil || !errors.Is(e, context.DeadlineExceeded) {
			break
		}
	}
	return nil, cut(ctx, err)
}

// decided reads the leader's answer. Its JSON holds U+FFFD for bytes of a subject
// that are not UTF-8, so such a subject is read again, through a consumer.
func decided(ctx context.Context, js jetstream.JetStream, stream string, answer []byte) (*Message, error) {
	msg, err := parseStored(answer)
	if err != nil || !strings.ContainsRune(msg.Subject, utf8.RuneError) {
		return msg, err
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
