package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
)

// sink makes the job's.
func (j *Job) sink(ctx context.Context, w io.Writer) (sink, error) {
	switch j.spec.Kind {
	case IntoTopic:
		return j.target.sink(j)
	case IntoSubject:
		return j.subjectSink(ctx)
	}
	return &writerSink{w: w}, nil
}

// subjectSink publishes each event as a message: its JSON, without the line's end.
type subjectSink struct {
	j  *Job
	nc *nats.Conn
	// js is set when a stream stores what is published: then each message is
	// acknowledged.
	js     jetstream.JetStream
	stream string
	acks   []jetstream.PubAckFuture
}

// ackTime is how long an answer may take.
const ackTime = 10 * time.Second

// maxUnacked bounds the messages that a stream was sent and did not acknowledge.
const maxUnacked = 1024

func (j *Job) subjectSink(ctx context.Context) (sink, error) {
	s := &subjectSink{j: j, nc: j.r.cfg.NATS}
	js, err := jetstream.New(s.nc, jetstream.WithPublishAsyncMaxPending(maxUnacked), jetstream.WithPublishAsyncTimeout(ackTime))
	if err != nil {
		return nil, err
	}
	s.stream, err = streams.Asked(ctx, js.Conn(), func(ctx context.Context) (string, error) { return js.StreamNameBySubject(ctx, j.spec.Into) })
	switch {
	case err == nil:
		s.js = js
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fmt.Errorf("replay: who listens on %s: %w", j.spec.Into, err)
	}
	return s, nil
}

func (s *subjectSink) unit(ctx context.Context, u *unit) error {
	for i := range u.rows {
		if err := s.event(ctx, u, i); err != nil {
			return err
		}
	}
	return nil
}

func (s *subjectSink) event(ctx context.Context, u *unit, i int) error {
	msg := nats.NewMsg(s.j.spec.Into)
	msg.Data = bytes.TrimSuffix(u.lines[u.rows[i].from:u.rows[i].to], []byte("\n"))
	// The same event of the same job has the same id each time, from either source.
	e := &u.rows[i]
	msg.Header.Set(jetstream.MsgIDHeader, fmt.Sprintf("%s.%s.%d.%d.%s.%d", s.j.ID(), u.shard.ID, u.end.Number, e.ts, e.id, e.nth))
	if s.js == nil {
		if err := s.nc.PublishMsg(msg); err != nil {
			return fmt.Errorf("replay: publishing to %s: %w", s.j.spec.Into, err)
		}
		return nil
	}
	if len(s.acks) == maxUnacked {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	ack, err := s.js.PublishMsgAsync(msg)
	if err != nil {
		return fmt.Errorf("replay: publishing to %s: %w", s.j.spec.Into, err)
	}
	s.acks = append(s.acks, ack)
	return nil
}

func (s *subjectSink) flush(ctx context.Context) error {
	if s.js == nil {
		wait, cancel := context.WithTimeout(ctx, ackTime)
		defer cancel()
		if err := s.nc.FlushWithContext(wait); err != nil {
			return fmt.Errorf("replay: flushing %s: %w", s.j.spec.Into, err)
		}
		return nil
	}
	for _, ack := range s.acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return fmt.Errorf("replay: stream %s did not take an event on %s: %w", s.stream, s.j.spec.Into, err)
		case <-ctx.Done():
			return fmt.Errorf("replay: stream %s did not confirm an event on %s: %w; run this again", s.stream, s.j.spec.Into, ctx.Err())
		}
	}
	s.acks = s.acks[:0]
	return nil
}
