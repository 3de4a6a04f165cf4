package sinks

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// notice is a frame in SHARDS, by its headers.
type notice struct {
	ref  schemas.ShardRef
	tail position
	seq  uint64
	// watch counts the watches.
	watch int
}

// watch follows the headers of SHARDS into out: the last frame of every shard,
// then each new one. It returns when ctx ends or the stream cannot be followed.
//
// A message that is not a frame is reported and passed over. Where it hides the last frame of a
// shard, that is looked for below it: a router takes the message out, and then no other comes.
func watch(ctx context.Context, js jetstream.JetStream, count int, out chan<- notice, noFrame func(error)) error {
	// A consumer that is created again after an outage goes on after the last message
	// it saw. Should the stream have lost its end meanwhile, only a new watch sees
	// what stands there now.
	reconnects := js.Conn().Stats().Reconnects
	feed, err := streams.Follow(ctx, js, schemas.StreamShards, streams.Range{Filter: schemas.SubjectsShards, LastPerSubject: true, HeadersOnly: true}, watchAhead)
	if err != nil {
		return fmt.Errorf("sinks: %w", err)
	}
	defer feed.Stop()
	hidden := map[string]bool{} // subjects whose last frame was looked for
	for {
		msg, err := feed.Next(ctx)
		if err != nil {
			return fmt.Errorf("sinks: %w", err)
		}
		if now := js.Conn().Stats().Reconnects; now != reconnects {
			return fmt.Errorf("sinks: watching %s: the connection was lost meanwhile", schemas.StreamShards)
		}
		n, err := noticeOf(msg)
		if err != nil {
			noFrame(err)
			if _, err := schemas.ParseShardSubject(msg.Subject); err != nil || hidden[msg.Subject] || len(hidden) >= watchAhead {
				continue
			}
			hidden[msg.Subject] = true
			if msg, err = frameBelow(ctx, js, msg); err != nil {
				return err
			}
			if msg == nil {
				continue
			}
			if n, err = noticeOf(msg); err != nil {
				continue
			}
		}
		if msg.Header.Get(schemas.HeaderCleared) == schemas.ClearedDropped {
			continue // nothing of the shard is to be stored, ever
		}
		n.watch = count
		select {
		case out <- n:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// frameBelow is the last frame of a shard below a message that is not one; nil: there is none.
func frameBelow(ctx context.Context, js jetstream.JetStream, at *streams.Message) (last *streams.Message, err error) {
	_, err = streams.Headers(ctx, js, schemas.StreamShards, at.Subject, 1, func(m *streams.Message) error {
		if _, err := noticeOf(m); err == nil && m.Sequence < at.Sequence {
			last = m
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sinks: %w", err)
	}
	return last, nil
}

// watchAhead bounds the headers read ahead, at about 600 bytes each.
const watchAhead = 2000

func noticeOf(msg *streams.Message) (notice, error) {
	var n notice
	ref, err := schemas.ParseShardSubject(msg.Subject)
	if err != nil {
		return n, fmt.Errorf("sinks: %w", err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil {
		return n, fmt.Errorf("sinks: %s message %d: %w", msg.Subject, msg.Sequence, err)
	}
	return notice{ref: ref, tail: position{p.Pos, p.ShardRows, p.ShardBytes}, seq: msg.Sequence}, nil
}
