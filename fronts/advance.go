package fronts

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// Advance has the stream go on above a sequence, after it lost its end: by blanks on a
// subject of their own, each batch of which takes the place of the one before. None is left.
// step, when not nil, is called after each batch.
func (w *Writer) Advance(ctx context.Context, subject string, above uint64, step func()) error {
	for {
		last, err := streams.LastSeq(ctx, w.js, w.stream)
		if err != nil {
			return err
		}
		if last >= above {
			return streams.Purge(ctx, w.js, w.stream, subject)
		}
		blanks := make([]*nats.Msg, min(MaxBatch, above-last))
		for i := range blanks {
			blanks[i] = nats.NewMsg(subject)
			blanks[i].Header.Set(schemas.HeaderBlank, "advance")
		}
		blanks[0].Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
		if len(blanks) == 1 {
			_, err = streams.Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) { return w.js.PublishMsg(ctx, blanks[0]) })
		} else {
			_, err = w.batch(ctx, blanks, w.cfg.Timeout)
		}
		if err != nil {
			return err
		}
		if step != nil {
			step()
		}
	}
}
