package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Headers gives f the headers of a stream's messages under a filter, from a
// sequence on (with DeliverByStartSequencePolicy), to the end as it stands now. It
// reads through a consumer that ends with the call.
//
// A NATS server checks each message's checksum when it reads it, and passes over
// one that is damaged without a word, though it counts it. unread is how many it
// counted and did not give: damaged ones, and those purged meanwhile.
func Headers(ctx context.Context, s jetstream.Stream, filter string, policy jetstream.DeliverPolicy, from uint64, f func(msg jetstream.Msg, seq uint64) error) (unread uint64, err error) {
	fail := func(err error) (uint64, error) {
		return 0, fmt.Errorf("streams: reading headers of %s: %w", filter, err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		return fail(err)
	}
	end := info.State.LastSeq
	cons, err := s.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject: filter, DeliverPolicy: policy, OptStartSeq: from, HeadersOnly: true,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, InactiveThreshold: headersIdle, Replicas: 1,
	})
	if err != nil {
		return fail(err)
	}
	name := cons.CachedInfo().Name
	defer func() {
		drop, cancel := context.WithTimeout(context.WithoutCancel(ctx), headersIdle)
		defer cancel()
		_ = s.DeleteConsumer(drop, name)
	}()
	last := uint64(0)
	for left := cons.CachedInfo().NumPending; left > 0; {
		batch, err := cons.FetchNoWait(int(min(left, headersBatch)))
		if err != nil {
			return fail(err)
		}
		got := uint64(0)
		for msg := range batch.Messages() {
			meta, err := msg.Metadata()
			if err != nil {
				return fail(err)
			}
			last = meta.Sequence.Stream
			if err := f(msg, last); err != nil {
				return 0, err
			}
			got++
		}
		switch err := batch.Error(); {
		case ctx.Err() != nil:
			return fail(ctx.Err())
		case err != nil:
			return fail(err)
		}
		if got == 0 { // each costs the server's consumer one turn
			unread++
			got = 1
		}
		left -= min(got, left)
	}
	if unread == 0 || policy == jetstream.DeliverLastPerSubjectPolicy {
		return unread, nil
	}
	// Were the server only slow, what follows would be taken for damaged.
	switch next, err := s.GetMsg(ctx, last+1, jetstream.WithGetMsgSubject(filter)); {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return unread, nil
	case err != nil:
		return fail(err)
	case next.Sequence <= end:
		return fail(ErrCut)
	}
	return unread, nil
}

// headersBatch bounds the headers asked for at once, at about 600 bytes each;
// headersIdle is how long the server keeps the consumer of a reader that died.
const (
	headersBatch = 2000
	headersIdle  = 10 * time.Second
)

// Frames gives f the headers of every frame of a topic's shards that SHARDS
// holds, in the stream's order; what is no frame is skipped.
func Frames(ctx context.Context, shards jetstream.Stream, filter string, f func(ref ShardRef, p schemas.Placed, seq uint64, at time.Time) error) (unread uint64, err error) {
	return Headers(ctx, shards, filter, jetstream.DeliverAllPolicy, 0, func(msg jetstream.Msg, seq uint64) error {
		var ref ShardRef
		var err error
		if ref.Topic, ref.Month, ref.ID, err = schemas.ParseShardSubject(msg.Subject()); err != nil {
			return nil
		}
		p, err := schemas.ParsePlaced(msg.Headers())
		if err != nil {
			return nil
		}
		meta, err := msg.Metadata()
		if err != nil {
			return err
		}
		return f(ref, p, seq, meta.Timestamp)
	})
}

// ShardRef names a shard.
type ShardRef struct {
	Topic string
	Month schemas.Month
	ID    schemas.Shard
}

// String is the shard's public name.
func (r ShardRef) String() string { return schemas.PublicShardName(r.Topic, r.Month, r.ID) }

// Subject is the shard's subject in SHARDS.
func (r ShardRef) Subject() string { return schemas.ShardSubject(r.Topic, r.Month, r.ID) }
