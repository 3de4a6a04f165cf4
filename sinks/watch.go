package sinks

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// notice is a frame in SHARDS, by its headers.
type notice struct {
	ref  Ref
	tail mark
	seq  uint64
}

// watch follows the headers of SHARDS into out: the last frame of every shard,
// then each new one. It returns when ctx ends or the stream cannot be followed.
//
// A message that is no frame is reported and passed over: it is no shard's.
func watch(ctx context.Context, nc *nats.Conn, shards jetstream.Stream, out chan<- notice, noFrame func(error)) error {
	// A consumer that is made anew after an outage goes on behind the last message
	// it saw. Should the stream have lost its end meanwhile, only a new watch sees
	// what stands there now.
	reconnects := nc.Stats().Reconnects
	cons, err := shards.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects:    []string{schemas.SubjectsShards},
		DeliverPolicy:     jetstream.DeliverLastPerSubjectPolicy,
		HeadersOnly:       true,
		InactiveThreshold: idleConsumer,
	})
	if err != nil {
		return fmt.Errorf("sinks: watching %s: %w", schemas.StreamShards, err)
	}
	iter, err := cons.Messages(jetstream.PullMaxMessages(watchAhead))
	if err != nil {
		return fmt.Errorf("sinks: watching %s: %w", schemas.StreamShards, err)
	}
	// Neither Next nor Stop is waited for: while the client makes a lost consumer
	// anew, and its request has no answer, both take ten seconds.
	defer func() { go iter.Stop() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	msgs, failed := make(chan jetstream.Msg), make(chan error, 1)
	go pump(ctx, iter, msgs, failed)
	for {
		var msg jetstream.Msg
		select {
		case msg = <-msgs:
		case err := <-failed:
			return fmt.Errorf("sinks: watching %s: %w", schemas.StreamShards, err)
		case <-ctx.Done():
			return ctx.Err()
		}
		if now := nc.Stats().Reconnects; now != reconnects {
			return fmt.Errorf("sinks: watching %s: the connection was lost meanwhile", schemas.StreamShards)
		}
		n, err := noticeOf(msg)
		if err != nil {
			noFrame(err)
			continue
		}
		if msg.Headers().Get(schemas.HeaderCleared) == schemas.ClearedDropped {
			continue // nothing of the shard is to be stored, ever
		}
		select {
		case out <- n:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// pump hands messages over until ctx ends or there are no more.
func pump(ctx context.Context, iter jetstream.MessagesContext, msgs chan<- jetstream.Msg, failed chan<- error) {
	for {
		msg, err := iter.Next()
		if err != nil {
			failed <- err
			return
		}
		select {
		case msgs <- msg:
		case <-ctx.Done():
			return
		}
	}
}

// watchAhead bounds the headers read ahead, at about 600 bytes each.
const watchAhead = 2000

// idleConsumer is how long the server keeps the consumer of a sink that died.
const idleConsumer = 30 * time.Second

func noticeOf(msg jetstream.Msg) (notice, error) {
	var n notice
	topic, month, id, err := schemas.ParseShardSubject(msg.Subject())
	if err != nil {
		return n, fmt.Errorf("sinks: %w", err)
	}
	meta, err := msg.Metadata()
	if err != nil {
		return n, fmt.Errorf("sinks: %w", err)
	}
	p, err := schemas.ParsePlaced(msg.Headers())
	if err != nil {
		return n, fmt.Errorf("sinks: %s message %d: %w", msg.Subject(), meta.Sequence.Stream, err)
	}
	return notice{Ref{topic, month, id}, mark{p.Pos, p.ShardRows, p.ShardBytes}, meta.Sequence.Stream}, nil
}
