package sinks

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// batch is frames of one shard that follow its head without a gap and share a
// schema version: what one insert may take.
type batch struct {
	ledger  ledger.Erasures // erasures that frames are held against
	schema  int
	frames  []tables.Frame
	end     position // after the last frame
	digest  string   // of the last frame
	lastSeq uint64
	rows    uint64
	bytes   uint64
	// source is the first frame's, which the others are alike (ledger.Erasures.Alike).
	// With minTs and maxTs (unix ns) of all it says which erasures concern them.
	source       schemas.Source
	minTs, maxTs int64
	keep         tables.Condition // what may be stored of it; empty: all
	// rawBytes are the decompressed bytes: one insert must stay one block in
	// ClickHouse's memory, or it is cut into parts of which some may be lost.
	rawBytes uint64
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
	case b.digest != "" && p.Prev != b.digest:
		return false, fmt.Errorf("%w: position %d names %s as its predecessor, position %d is %s", ErrGap, p.Pos, p.Prev, p.Pos-1, b.digest)
	case len(b.frames) > 0 && (p.Schema != b.schema || !b.ledger.Alike(p.Source(), b.source)):
		return false, nil
	}
	if len(b.frames) == 0 {
		b.source, b.minTs, b.maxTs = p.Source(), p.MinTs, p.MaxTs
	}
	b.minTs, b.maxTs = min(b.minTs, p.MinTs), max(b.maxTs, p.MaxTs)
	b.schema = p.Schema
	b.frames = append(b.frames, tables.Frame{Pos: p.Pos, Rows: p.Rows, Payload: payload})
	b.end = position{p.Pos, p.ShardRows, p.ShardBytes}
	b.digest, b.lastSeq = schemas.Digest(payload), seq
	b.rows, b.bytes, b.rawBytes = b.rows+uint64(p.Rows), b.bytes+uint64(len(payload)), b.rawBytes+uint64(p.RawBytes)
	return true, nil
}

// limits are when a batch is full.
type limits struct{ rows, bytes, rawBytes uint64 }

func (b *batch) full(l limits) bool {
	return len(b.frames) >= tables.MaxFrames || b.rows >= l.rows || b.bytes >= l.bytes || b.rawBytes >= l.rawBytes
}

// fetchFrames bounds the frames asked for at once.
const fetchFrames = 128

// fetch reads frames after the head from SHARDS, from sequence next on, up to
// the tail or until the batch is full. prev is the digest of the frame at the
// head; empty when it is not known.
func fetch(ctx context.Context, js jetstream.JetStream, ref schemas.ShardRef, head, tail, next uint64, prev string, l limits, erasures ledger.Erasures) (*batch, error) {
	b := &batch{ledger: erasures, digest: prev}
	want := func() int { // as many as the frames so far suggest
		n := uint64(len(b.frames))
		if n == 0 {
			return fetchFrames
		}
		return int(min(fetchFrames, (l.rows-b.rows)*n/max(b.rows, 1)+1))
	}
	err := streams.Gather(ctx, js, schemas.StreamShards, ref.Subject(), next, want, func(msg *streams.Message) (bool, error) {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil {
			return false, fmt.Errorf("sinks: %s message %d: %w", ref, msg.Sequence, err)
		}
		more, err := b.admit(head, p, msg.Data, msg.Sequence)
		if err != nil {
			return false, fmt.Errorf("sinks: %s: %w", ref, err)
		}
		return more && b.end.pos < tail && !b.full(l), nil
	})
	if err == nil && len(b.frames) == 0 {
		err = fmt.Errorf("sinks: %s: %w: positions %d to %d are not in %s", ref, ErrGap, head+1, tail, schemas.StreamShards)
	}
	return b, err
}
