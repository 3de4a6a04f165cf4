package fronts

import (
	"context"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Advance has the stream go on above a sequence, after it lost its end: by blanks on a
// subject of their own, each batch of which takes the place of the one before. The last batch
// stays, and says why, until the caller purges the subject. step, when not nil, is called after each batch.
func (w *Writer) Advance(ctx context.Context, subject, why string, above uint64, step func()) error {
	for {
		last, err := streams.LastSeq(ctx, w.js, w.stream)
		if err != nil {
			return err
		}
		if last >= above {
			return nil
		}
		blanks := make([]*nats.Msg, min(MaxBatch, above-last))
		for i := range blanks {
			blanks[i] = blank(subject, why)
		}
		blanks[0].Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
		if len(blanks) == 1 {
			err = w.one(ctx, blanks[0])
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

// Mark leaves one blank on a subject, which says why, in the place of those that are there.
func (w *Writer) Mark(ctx context.Context, subject, why string) error {
	m := blank(subject, why)
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	return w.one(ctx, m)
}

func blank(subject, why string) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Header.Set(schemas.HeaderBlank, why)
	return m
}

func (w *Writer) one(ctx context.Context, m *nats.Msg) error {
	_, err := streams.Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) { return w.js.PublishMsg(ctx, m) })
	return err
}
