package streams

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// FindFrame finds the sequence in SHARDS from which the frame at pos of a
// shard's subject can be read, by halving between the stream's first message and
// the shard's last, tailSeq: positions rise with sequences, so some 40 small
// reads do for any stream. Where the frame is not held, the answer leads to the
// next one that is.
func FindFrame(ctx context.Context, shards jetstream.Stream, subject string, pos, tailSeq uint64) (uint64, error) {
	seq, err := findFirst(ctx, shards, subject, tailSeq, func(p schemas.Placed) bool { return p.Pos >= pos })
	if err != nil {
		return 0, fmt.Errorf("streams: finding position %d of %s: %w", pos, subject, err)
	}
	return seq, nil
}

// FrameBefore finds a sequence in SHARDS that is not behind the frame at pos of a
// shard's subject, and not far before it: who reads on from there meets about as
// many frames in vain as in earnest. The shard's last frame, at tailPos, is message
// tailSeq; from there it steps back, twice as far each time.
func FrameBefore(ctx context.Context, shards jetstream.Stream, subject string, pos, tailPos, tailSeq uint64) (uint64, error) {
	if tailPos <= pos {
		return tailSeq, nil
	}
	for step := 2 * (tailPos - pos); step < tailSeq; step *= 2 {
		p, err := FrameFrom(ctx, shards, subject, tailSeq-step)
		if errors.Is(err, ErrNoFrame) { // the last one is gone as well
			return tailSeq, nil
		}
		if err != nil {
			return 0, fmt.Errorf("streams: finding what stands before position %d: %w", pos, err)
		}
		if p.Pos <= pos {
			return tailSeq - step, nil
		}
	}
	return 1, nil
}

// FindBehind finds the sequence in SHARDS of the first frame of a shard's subject
// that came from behind sequence source of EVENTS: the sources of a shard's frames
// rise with their positions. tailSeq must be of such a frame.
func FindBehind(ctx context.Context, shards jetstream.Stream, subject string, source, tailSeq uint64) (uint64, error) {
	seq, err := findFirst(ctx, shards, subject, tailSeq, func(p schemas.Placed) bool { return p.SourceSeq > source })
	if err != nil {
		return 0, fmt.Errorf("streams: finding what %s has from behind %d: %w", subject, source, err)
	}
	return seq, nil
}

// findFirst halves between the stream's first message and tailSeq for the first
// frame that is there.
func findFirst(ctx context.Context, shards jetstream.Stream, subject string, tailSeq uint64, there func(schemas.Placed) bool) (uint64, error) {
	info, err := shards.Info(ctx)
	if err != nil {
		return 0, err
	}
	first := info.State.FirstSeq
	if tailSeq < first {
		return first, nil
	}
	var failed error
	n := sort.Search(int(tailSeq-first), func(i int) bool {
		if failed != nil {
			return true
		}
		p, err := FrameFrom(ctx, shards, subject, first+uint64(i))
		if errors.Is(err, ErrNoFrame) {
			return true // nothing of the shard from here on
		}
		failed = err
		return err != nil || there(p)
	})
	return first + uint64(n), failed
}

// FrameFrom reads the headers of the first frame of a shard's subject at or
// after a sequence of SHARDS.
func FrameFrom(ctx context.Context, shards jetstream.Stream, subject string, seq uint64) (schemas.Placed, error) {
	msg, err := shards.GetMsg(ctx, seq, jetstream.WithGetMsgSubject(subject))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return schemas.Placed{}, fmt.Errorf("%w: %s from message %d on", ErrNoFrame, subject, seq)
	}
	if err != nil {
		return schemas.Placed{}, fmt.Errorf("streams: %s from message %d on: %w", subject, seq, err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil {
		return p, fmt.Errorf("streams: %s message %d: %w", subject, msg.Sequence, err)
	}
	return p, nil
}

// FirstAfter finds the first sequence of a stream that was stored after t, or the
// one behind its last, by halving.
func FirstAfter(ctx context.Context, s jetstream.Stream, t time.Time) (uint64, error) {
	info, err := s.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("streams: %w", err)
	}
	first, last := info.State.FirstSeq, info.State.LastSeq
	var failed error
	n := sort.Search(int(last+1-first), func(i int) bool {
		if failed != nil {
			return true
		}
		msg, err := s.GetMsg(ctx, first+uint64(i), jetstream.WithGetMsgSubject(">"))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return true
		}
		failed = err
		return err != nil || msg.Time.After(t)
	})
	if failed != nil {
		return 0, fmt.Errorf("streams: first message of %s after %s: %w", info.Config.Name, t.UTC().Format(time.RFC3339), failed)
	}
	return first + uint64(n), nil
}
