package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// A pull of a feed ends after pullTime and is followed by another. The server sends
// a heartbeat each second that it has nothing else to send; a feed that misses them
// for heartbeatLoss makes another consumer.
const (
	pullTime      = 5 * time.Second
	heartbeat     = time.Second
	heartbeatLoss = 2500 * time.Millisecond
)

// Follower follows a range of a stream in order, without an end. Not safe for
// concurrent use.
type Follower struct {
	js     jetstream.JetStream
	stream string
	r      Range
	ahead  int
	p      *puller
	asked  int // messages the server may still give
	lost   int // consumers in a row that gave nothing
	// known is a message that the stream had, or its end. A consumer that is lost may be so
	// because the server was started again on a stream that lost its end.
	known schemas.Source
}

// Follow begins a feed that holds at most ahead messages in the client.
func Follow(ctx context.Context, js jetstream.JetStream, stream string, r Range, ahead int) (*Follower, error) {
	f := &Follower{js: js, stream: stream, r: r, ahead: ahead}
	info, err := Info(ctx, js, stream)
	if err != nil {
		return nil, fmt.Errorf("streams: following %s of %s: %w", r.Filter, stream, err)
	}
	f.known = EndOf(info)
	return f, f.open(ctx)
}

// check ends the feed of a stream that gives sequences again: the next message would be
// another one.
func (f *Follower) check(ctx context.Context) error {
	next, again, err := GivenAgain(ctx, f.js, f.stream, f.known)
	if err == nil && again {
		err = fmt.Errorf("streams: following %s: %w: it had message %d, and what it stored since begins at %d", f.stream, ErrGivenAgain, f.known.Seq, next)
	}
	return err
}

func (f *Follower) open(ctx context.Context) error {
	f.Stop()
	p, err := newPuller(ctx, f.js, f.stream, f.r, f.ahead)
	if err != nil {
		return fmt.Errorf("streams: following %s of %s: %w", f.r.Filter, f.stream, err)
	}
	f.p, f.asked = p, 0
	return nil
}

// Next waits for the next message. A message that got lost on the way, or a
// consumer that fell silent, is made up for by another consumer, from the message
// after the last; ErrCut when that gives nothing either, and ErrGivenAgain where the
// stream lost its end meanwhile.
func (f *Follower) Next(ctx context.Context) (*Message, error) {
	for {
		if f.p == nil {
			if err := f.check(ctx); err != nil {
				return nil, err
			}
			if err := f.open(ctx); err != nil {
				return nil, err
			}
		}
		if f.asked <= f.ahead/2 {
			n := f.ahead - f.asked
			if err := f.p.request(pullRequest{Batch: n, Expires: pullTime, Heartbeat: heartbeat}); err != nil {
				return nil, fmt.Errorf("streams: following %s of %s: %w", f.r.Filter, f.stream, err)
			}
			f.asked += n
		}
		m, s, err := f.p.next(ctx, heartbeatLoss<<f.lost)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			if err := f.again(err); err != nil {
				return nil, err
			}
		case m != nil:
			f.asked, f.lost = max(f.asked-1, 0), 0
			f.r.From, f.r.LastPerSubject = m.Sequence+1, false
			f.known = schemas.Source{Seq: m.Sequence, Stored: m.Time.UnixNano()}
			if f.r.HeadersOnly {
				m.Size = sizeOf(m.Header)
			}
			return m, nil
		case s.code == statusHeartbeat:
			f.lost = 0
		case s.code == statusPartial || s.code == statusNone: // the pull's time is over
			f.asked -= min(f.asked, int(s.pending))
			if s.pending == 0 {
				f.asked = 0
			}
			f.lost = 0
		case s.code == statusNoResponders:
			if err := wait(ctx, behindPause); err != nil {
				return nil, ctx.Err()
			}
			fallthrough
		default: // the consumer is gone, or its server is about to
			if err := f.again(errors.New("NATS answered " + s.code + " " + s.reason)); err != nil {
				return nil, err
			}
		}
	}
}

// maxLost is how many consumers in a row may give nothing, not even a heartbeat. Each
// gets twice the time of the one before: a server that is late still delivers for that
// one, and is later with each new one.
const maxLost = 3

func (f *Follower) again(why error) error {
	f.Stop()
	if f.lost++; f.lost < maxLost {
		return nil
	}
	return fmt.Errorf("streams: following %s of %s: %w", f.r.Filter, f.stream, cut(context.Background(), why))
}

// Stop ends the feed's consumer.
func (f *Follower) Stop() {
	if f.p != nil {
		f.p.close()
		f.p = nil
	}
}
