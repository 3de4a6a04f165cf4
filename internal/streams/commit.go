package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// Commit publishes messages all or none, and returns the sequence of the last: they lie in one run of sequences. One goes
// by itself, since a batch costs 4 syncs and files of its own; more go in an atomic batch. It publishes copies, since the library leaves its headers in what it is given, and a
// refused message may be sent again. ctx must have a deadline: it alone bounds the wait. After an error that is not JetStream's refusal it is unknown whether they were stored.
func Commit(ctx context.Context, js jetstream.JetStream, msgs ...*nats.Msg) (last uint64, err error) {
	copies := make([]*nats.Msg, len(msgs))
	for i, m := range msgs {
		copies[i] = &nats.Msg{Subject: m.Subject, Header: maps.Clone(m.Header), Data: m.Data}
	}
	if len(copies) == 1 {
		ack, err := js.PublishMsg(ctx, copies[0])
		if err != nil {
			return 0, err
		}
		return ack.Sequence, nil
	}
	// No wait after the first message: the stream's ingest queue of 128 MiB takes what callers commit many times over.
	ack, err := jetstreamext.PublishMsgBatch(ctx, js, copies, jetstreamext.BatchFlowControl{AckFirst: false})
	if Incomplete(err) {
		err = fmt.Errorf("streams: a message was lost on its way to NATS, which stored none of %d that go together: %w; try it again", len(copies), err)
	}
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

const codeIncomplete jetstream.ErrorCode = 10176 // atomic publish batch is incomplete

// Incomplete reports whether JetStream lacked messages of a batch, which were lost on their way. It
// stored nothing of it.
func Incomplete(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeIncomplete
}
