package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of what a Publisher has on its way.
const (
	maxSent      = 256
	maxSentBytes = 16 << 20
	// ackTime is how long an answer may take; publishWait how long a full or absent
	// stream is tried.
	ackTime      = 10 * time.Second
	publishWait  = time.Minute
	publishRetry = 250 * time.Millisecond
)

// Publisher stores frames in EVENTS, many at once. A frame without an answer is sent again as
// it was, so each must have a message id. It is not safe for concurrent use.
type Publisher struct {
	js   jetstream.JetStream
	sent []sentMsg
	size int
}

type sentMsg struct {
	msg    *nats.Msg
	stored func(duplicate bool)
	ack    jetstream.PubAckFuture
}

// NewPublisher prepares a publisher.
func NewPublisher(nc *nats.Conn) (*Publisher, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(maxSent), jetstream.WithPublishAsyncTimeout(ackTime))
	return &Publisher{js: js}, err
}

// Publish sends a message, and waits for answers when too many are missing. stored is called
// with whether JetStream had the message already.
func (p *Publisher) Publish(ctx context.Context, msg *nats.Msg, stored func(duplicate bool)) error {
	if len(p.sent) == maxSent || p.size > maxSentBytes {
		if err := p.Flush(ctx); err != nil {
			return err
		}
	}
	ack, err := p.js.PublishMsgAsync(msg)
	if err != nil {
		return fmt.Errorf("publishing to %s: %w", msg.Subject, err)
	}
	p.sent = append(p.sent, sentMsg{msg, stored, ack})
	p.size += len(msg.Data)
	return nil
}

// Flush returns once everything that was published is stored.
func (p *Publisher) Flush(ctx context.Context) error {
	for _, m := range p.sent {
		select {
		case ack := <-m.ack.Ok():
			m.stored(ack.Duplicate)
		case err := <-m.ack.Err():
			if err := p.again(ctx, m, err); err != nil {
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("%s did not confirm a frame: %w; run this again", schemas.StreamEvents, ctx.Err())
		}
	}
	p.sent, p.size = p.sent[:0], 0
	return nil
}

func (p *Publisher) again(ctx context.Context, m sentMsg, err error) error {
	for deadline := time.Now().Add(publishWait); time.Now().Before(deadline) && ctx.Err() == nil; {
		try, cancel := context.WithTimeout(ctx, ackTime)
		var ack *jetstream.PubAck
		if ack, err = p.js.PublishMsg(try, m.msg); err == nil {
			m.stored(ack.Duplicate)
		}
		cancel()
		if err == nil {
			return nil
		}
		if werr := backoff.Sleep(ctx, publishRetry); werr != nil {
			return werr
		}
	}
	return errors.Join(fmt.Errorf("%s did not take a frame: %w", schemas.StreamEvents, err), ctx.Err())
}
