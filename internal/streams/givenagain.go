package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// GivenAgain reports whether a stream lost its end below a message that a reader knows,
// and where the reader goes on then: at the first message that was stored later. A message
// at or below the known sequence that is younger was given its sequence again.
func GivenAgain(ctx context.Context, js jetstream.JetStream, stream string, known schemas.Source) (next uint64, again bool, err error) {
	if known.Seq == 0 {
		return 0, false, nil
	}
	info, err := Info(ctx, js, stream)
	if err != nil {
		return 0, false, fmt.Errorf("streams: %s: %w", stream, err)
	}
	if info.State.LastSeq >= known.Seq {
		msg, err := DecideAt(ctx, js, stream, known.Seq)
		if err == nil && msg.Time.UnixNano() <= known.Stored {
			return 0, false, nil
		}
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return 0, false, fmt.Errorf("streams: message %d of %s: %w", known.Seq, stream, err)
		}
	}
	if next, err = FirstAfter(ctx, js, stream, time.Unix(0, known.Stored)); err != nil {
		return 0, false, err
	}
	// The message itself: those between may have been taken out.
	switch msg, err := DecideNext(ctx, js, stream, ">", next); {
	case err == nil:
		next = msg.Sequence
	case errors.Is(err, jetstream.ErrMsgNotFound): // none is younger
		return next, info.State.LastSeq < known.Seq, nil
	default:
		return 0, false, fmt.Errorf("streams: message %d of %s: %w", next, stream, err)
	}
	return next, next <= known.Seq || info.State.LastSeq < known.Seq, nil
}
