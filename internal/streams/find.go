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
func FindFrame(ctx context.Context, js jetstream.JetStream, subject string, pos, tailSeq uint64) (uint64, error) {
	seq, err := findFirst(ctx, js, subject, tailSeq, func(p schemas.Placed) bool { return p.Pos >= pos })
	if err != nil {
		return 0, fmt.Errorf("streams: finding position %d of %s: %w", pos, subject, err)
	}
	return seq, nil
}

// FrameBefore finds a sequence in SHARDS that is not above the frame at pos of a
// shard's subject, and not far below it: a read from there meets about as many
// frames in vain as in earnest. The shard's last frame, at tailPos, is message
// tailSeq; from there it steps back, twice as far each time.
func FrameBefore(ctx context.Context, js jetstream.JetStream, subject string, pos, tailPos, tailSeq uint64) (uint64, error) {
	if tailPos <= pos {
		return tailSeq, nil
	}
	for step := 2 * (tailPos - pos); step < tailSeq; step *= 2 {
		p, err := FrameFrom(ctx, js, subject, tailSeq-step)
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
// that lies above position pos and came from above a fence in EVENTS. Frames come into
// a shard in the order in which EVENTS stored them. tailSeq must be of such a frame.
func FindBehind(ctx context.Context, js jetstream.JetStream, subject string, fence schemas.Source, pos, tailSeq uint64) (uint64, error) {
	seq, err := findFirst(ctx, js, subject, tailSeq, func(p schemas.Placed) bool { return p.Pos > pos && !p.Source().UpTo(fence) })
	if err != nil {
		return 0, fmt.Errorf("streams: finding what %s has from above %d: %w", subject, fence.Seq, err)
	}
	return seq, nil
}

// findFirst halves between the stream's first message and tailSeq for the first
// frame that is there.
func findFirst(ctx context.Context, js jetstream.JetStream, subject string, tailSeq uint64, there func(schemas.Placed) bool) (uint64, error) {
	info, err := Info(ctx, js, schemas.StreamShards)
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
		p, err := FrameFrom(ctx, js, subject, first+uint64(i))
		if errors.Is(err, ErrNoFrame) {
			return true // nothing of the shard from here on
		}
		failed = err
		return err != nil || there(p)
	})
	return first + uint64(n), failed
}

// FrameFrom reads the headers of the first frame of a shard's subject at or after
// a sequence of SHARDS.
func FrameFrom(ctx context.Context, js jetstream.JetStream, subject string, seq uint64) (schemas.Placed, error) {
	p, _, err := Frame(ctx, js, subject, seq)
	return p, err
}

// Frame reads the first frame of a shard's subject at or after a sequence of
// SHARDS. ErrNoFrame when there is none, by the leader's word.
func Frame(ctx context.Context, js jetstream.JetStream, subject string, seq uint64) (schemas.Placed, *Message, error) {
	msg, err := DecideNext(ctx, js, schemas.StreamShards, subject, seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return schemas.Placed{}, nil, fmt.Errorf("%w: %s from message %d on", ErrNoFrame, subject, seq)
	}
	if err != nil {
		return schemas.Placed{}, nil, fmt.Errorf("streams: %s from message %d on: %w", subject, seq, err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil {
		return p, msg, fmt.Errorf("streams: %s message %d: %w", subject, msg.Sequence, err)
	}
	return p, msg, nil
}

// FirstAfter finds the first sequence of a stream that was stored after t, or the
// one above its last, by halving.
func FirstAfter(ctx context.Context, js jetstream.JetStream, stream string, t time.Time) (uint64, error) {
	info, err := Info(ctx, js, stream)
	if err != nil {
		return 0, err
	}
	first, last := info.State.FirstSeq, info.State.LastSeq
	var failed error
	n := sort.Search(int(last+1-first), func(i int) bool {
		if failed != nil {
			return true
		}
		msg, err := DecideNext(ctx, js, stream, ">", first+uint64(i))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return true
		}
		failed = err
		return err != nil || msg.Time.After(t)
	})
	if failed != nil {
		return 0, fmt.Errorf("streams: first message of %s after %s: %w", stream, t.UTC().Format(time.RFC3339), failed)
	}
	return first + uint64(n), nil
}
