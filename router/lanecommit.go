package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// commit adds the checkpoint and has the batch published, all or nothing. After an
// error it is unknown whether it committed: the next run reads the checkpoint.
func (l *lane) commit(ctx context.Context, b *batch) error {
	data, err := json.Marshal(&l.cp)
	if err != nil {
		return err
	}
	b.keepGiven(l.givenSubject())
	ck := nats.NewMsg(l.routed)
	ck.Data = data
	ck.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(l.ckSeq, 10))
	msgs := append(b.msgs, ck)
	last, took, err := l.group.commit(ctx, msgs, b.bytes+len(data))
	if err != nil {
		return err
	}
	for _, t := range b.touched {
		t.state.tail.seq = last - uint64(len(msgs)-1-t.last)
	}
	l.ckSeq, l.last = last, commit{b.bytes, took}
	if l.copies != nil && !l.sweeping && !l.cp.Forgets(&l.past) {
		l.copies.note(laneID{l.topic, l.token}, &l.cp)
	}
	return nil
}

func commitError(err error) error {
	switch {
	case streams.LostRace(err):
		return fmt.Errorf("%w: %w", ErrLostLane, err)
	case streams.Full(err):
		return fmt.Errorf("%w: %w", ErrShardsFull, err)
	}
	return fmt.Errorf("router: publishing to %s: %w", schemas.StreamShards, err)
}

// reasonOf is the word of a refusal.
func reasonOf(err error) string {
	if errors.Is(err, ErrStaleSeq) {
		return schemas.ReasonStaleSeq
	}
	return schemas.Reason(err)
}
