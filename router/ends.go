package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// SHARDS can lose its end: a server that was killed cuts its last block at the
// first message it cannot read. What is left of the stream is its beginning, so a
// lane's checkpoint says where the lane stands unless one of these is true, and
// then the lane stops until a repair has found out what was routed already.
//
//   - The cut went through a batch: a shard ends with a frame of a message above
//     the checkpoint, or with another than the checkpoint remembers (tailOf).
//   - The cut went through a shard that was left since. Its lost frames would be
//     routed again to its successor, though ClickHouse may have them (checkLeft), or
//     it would be sealed below them (endOf).
//   - The lane's shard is sealed: a repair of one of these is not done (checkOpen).
//
// Where the cut went through an active shard and between two batches, its lost
// frames are routed again to the positions they had. Where a shard lost its last
// frame and the checkpoint after it is there, that position is not given again.

// readTail reads the end of a shard from SHARDS. A shard without a last message
// is empty only when the stream counts none: a server passes over a message whose
// checksum is wrong, and to go on before it would give its position again.
func (l *lane) readTail(ctx context.Context, m schemas.Month, id schemas.Shard) (tail, error) {
	subject := schemas.ShardSubject(l.topic, m, id)
	msg, err := streams.DecideLast(ctx, l.js, schemas.StreamShards, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		info, err := streams.Asked(ctx, l.js.Conn(), func(ctx context.Context) (*jetstream.StreamInfo, error) {
			return l.shards.Info(ctx, jetstream.WithSubjectFilter(subject))
		})
		if err == nil && info.State.Subjects[subject] > 0 {
			err = fmt.Errorf("%w: its last message cannot be read; run `almanac repair %s`", ErrDamaged, l.topic)
		}
		if err != nil {
			return tail{}, fmt.Errorf("router: tail of %s: %w", subject, err)
		}
		return tail{}, nil
	}
	if err != nil {
		return tail{}, fmt.Errorf("router: tail of %s: %w", subject, err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil {
		return tail{}, fmt.Errorf("router: tail of %s, message %d: %w", subject, msg.Sequence, err)
	}
	return tail{pos: p.Pos, seq: msg.Sequence, digest: schemas.Digest(msg.Data), rows: p.ShardRows, bytes: p.ShardBytes, ids: p.ShardIDs, source: p.SourceSeq, era: p.SourceEra}, nil
}

// tailOf is where a shard ends: where SHARDS says, or the checkpoint, which was
// stored after the shard's last frame and survived it.
func (l *lane) tailOf(ctx context.Context, s registry.Shard) (tail, error) {
	t, err := l.readTail(ctx, s.Month, s.ID)
	if err != nil {
		return t, err
	}
	known, ok := l.cp.Tails[s.ID]
	switch {
	case !ok:
		return t, l.checkTail(s, t)
	case t.pos == known.Pos && (t.digest == known.Digest || t.digest == ""): // "": cleared, which leaves its mark
		return t, nil
	case t.pos < known.Pos:
		l.cfg.Hooks.fault(l.topic, l.token, fmt.Errorf("router: %w: %s ends at position %d in %s and had %d; it goes on after that, run `almanac repair %s` to bring back what is between",
			ErrDamaged, s.Name(), t.pos, schemas.StreamShards, known.Pos, l.topic))
		return tail{pos: known.Pos, seq: t.seq, digest: known.Digest, rows: known.Rows, bytes: known.Bytes, ids: known.IDs, source: known.Source, era: l.cp.Era}, nil
	}
	return t, fmt.Errorf("%w: %s ends with position %d in %s, the checkpoint has another frame at position %d as its last; run `almanac repair %s`",
		ErrRolledBack, s.Name(), t.pos, schemas.StreamShards, known.Pos, l.topic)
}

// checkTail refuses a shard whose last frame came from above the checkpoint.
func (l *lane) checkTail(s registry.Shard, t tail) error {
	if !l.cp.Behind(t.era, t.source) {
		return nil
	}
	return fmt.Errorf("%w: %s ends with message %d of %s, the checkpoint stands at %d; run `almanac repair %s`",
		ErrRolledBack, s.Name(), t.source, l.stream(), l.cp.Source, l.topic)
}

// checkOpen refuses a shard that is the lane's and sealed: a repair sealed it where
// ClickHouse has it, and was killed before it took it out of the head entry.
func (l *lane) checkOpen(ctx context.Context, s registry.Shard) error {
	if s.Status == registry.Active {
		return nil
	}
	h, err := l.cfg.Registry.Head(ctx, s.Topic, s.Month)
	if err != nil {
		return err
	}
	if h.Active[s.ID.Lane()] != s.ID {
		return fmt.Errorf("router: %w: %s was left meanwhile", registry.ErrConflict, s.Name())
	}
	return fmt.Errorf("%w: %s is the lane's shard and is %s; run `almanac repair %s`", ErrRolledBack, s.Name(), s.Status, l.topic)
}

// checkLeft refuses to begin an empty shard while the one that the lane left last
// lacks its end: that one tells for all before it, and a shard with a frame tells
// for all it followed.
func (l *lane) checkLeft(ctx context.Context, empty registry.Shard) error {
	shards, err := l.cfg.Registry.Shards(ctx, l.topic, empty.Month)
	if err != nil {
		return err
	}
	left, ok := registry.LastLeft(shards, empty.ID.Lane(), empty.ID)
	if !ok {
		return nil
	}
	t, err := l.tailOf(ctx, left)
	if err != nil {
		return err
	}
	if lacks, err := l.lacksEnd(ctx, left, t); err != nil || !lacks {
		return err
	}
	return l.lostEnd(left, t)
}

// endOf is where a shard that a rotation left is to be sealed: where it ends in
// SHARDS. Where that is before what the rotation saw, and no younger shard has a
// frame, the stream lost its end, and the lane waits; else a single message of it
// went bad, and it is sealed where it was, for verify to name what is missing.
func (l *lane) endOf(ctx context.Context, m schemas.Month, id schemas.Shard, t tail) (tail, error) {
	s, err := l.cfg.Registry.Shard(ctx, schemas.ShardRef{Topic: l.topic, Month: m, ID: id})
	if err != nil {
		return t, err
	}
	if lacks, err := l.lacksEnd(ctx, s, t); err != nil || !lacks {
		return t, err
	}
	shards, err := l.cfg.Registry.Shards(ctx, l.topic, m)
	if err != nil {
		return t, err
	}
	for _, younger := range shards {
		if !younger.SameLane(&s) || younger.Gone() || registry.Compare(younger, s) <= 0 {
			continue
		}
		switch next, err := l.readTail(ctx, m, younger.ID); {
		case err != nil:
			return t, err
		case next.pos > 0:
			t.pos, t.rows, t.bytes, t.source = s.Until(), s.Rows, s.Bytes, 0 // where its last frame came from is not known
			return t, nil
		}
	}
	return t, l.lostEnd(s, t)
}

func (l *lane) lacksEnd(ctx context.Context, s registry.Shard, t tail) (bool, error) {
	if s.Until() <= t.pos {
		return false, nil
	}
	record, err := l.cfg.Registry.ErasureRecord(ctx, s.Ref())
	return s.LacksEnd(t.pos, &record), err
}

func (l *lane) lostEnd(s registry.Shard, t tail) error {
	return fmt.Errorf("%w: %s was left at position %d and ends at %d in %s; run `almanac repair %s`",
		ErrRolledBack, s.Name(), s.Until(), t.pos, schemas.StreamShards, l.topic)
}
