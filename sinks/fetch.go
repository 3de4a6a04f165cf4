package sinks

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

// batch is frames of one shard that follow its head without a gap and share a
// schema version: what one insert may take.
type batch struct {
	schema  int
	frames  [][]byte
	end     mark   // after the last frame
	digest  string // of the last frame
	lastSeq uint64
	rows    uint64
	bytes   uint64
}

// admit adds a frame, or says why it does not follow. more is false when the
// batch must end before it.
func (b *batch) admit(head uint64, p schemas.Placed, payload []byte, seq uint64) (more bool, err error) {
	want := head + uint64(len(b.frames)) + 1
	switch {
	case p.Pos < want:
		return false, fmt.Errorf("%w: position %d stands twice (message %d)", ErrGap, p.Pos, seq)
	case p.Pos > want:
		return false, fmt.Errorf("%w: positions %d to %d are missing (message %d has %d)", ErrGap, want, p.Pos-1, seq, p.Pos)
	case len(b.frames) > 0 && p.Prev != b.digest:
		return false, fmt.Errorf("%w: position %d names %s as its predecessor, position %d is %s", ErrGap, p.Pos, p.Prev, p.Pos-1, b.digest)
	case len(b.frames) > 0 && p.Schema != b.schema:
		return false, nil
	}
	b.schema = p.Schema
	b.frames = append(b.frames, payload)
	b.end = mark{p.Pos, p.ShardRows, p.ShardBytes}
	b.digest, b.lastSeq = schemas.Digest(payload), seq
	b.rows, b.bytes = b.rows+uint64(p.Rows), b.bytes+uint64(len(payload))
	return true, nil
}

// fetchFrames and fetchBytes bound one request for frames.
const (
	fetchFrames = 128
	fetchBytes  = 8 << 20
)

// fetch reads frames after the head from SHARDS, from sequence next on, up to
// the tail or to maxRows or maxBytes.
func fetch(ctx context.Context, js jetstream.JetStream, ref Ref, head, tail, next, maxRows, maxBytes uint64) (*batch, error) {
	b := &batch{}
	for b.end.pos < tail && b.rows < maxRows && b.bytes < maxBytes {
		want := fetchFrames
		if n := uint64(len(b.frames)); n > 0 { // as many as the frames so far suggest
			want = int(min(fetchFrames, (maxRows-b.rows)*n/max(b.rows, 1)+1))
		}
		msgs, err := jetstreamext.GetBatch(ctx, js, schemas.StreamShards, want,
			jetstreamext.GetBatchSubject(ref.Subject()), jetstreamext.GetBatchSeq(next), jetstreamext.GetBatchMaxBytes(fetchBytes))
		if err != nil {
			return nil, fmt.Errorf("sinks: reading %s: %w", ref, err)
		}
		before, none := len(b.frames), false
		for msg, err := range msgs {
			if none = errors.Is(err, jetstreamext.ErrNoMessages); none {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("sinks: reading %s: %w", ref, err)
			}
			p, err := schemas.ParsePlaced(msg.Header)
			if err != nil {
				return nil, fmt.Errorf("sinks: %s message %d: %w", ref, msg.Sequence, err)
			}
			more, err := b.admit(head, p, msg.Data, msg.Sequence)
			if err != nil {
				return nil, fmt.Errorf("sinks: %s: %w", ref, err)
			}
			if !more {
				return b, nil
			}
			next = msg.Sequence + 1
			if b.rows >= maxRows || b.bytes >= maxBytes {
				break
			}
		}
		switch {
		case len(b.frames) > before:
		case !none:
			return nil, errors.Join(fmt.Errorf("sinks: reading %s: %w", ref, registry.ErrCut), ctx.Err())
		default:
			return nil, fmt.Errorf("sinks: %s: %w: positions %d to %d are not in %s", ref, ErrGap, head+uint64(before)+1, tail, schemas.StreamShards)
		}
	}
	return b, nil
}
