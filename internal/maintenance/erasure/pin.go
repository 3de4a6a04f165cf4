package erasure

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// How far an erasure covers a shard that grew beyond its fence is told by the frames at the fence. An
// erasure that was killed while it settled asks for them when it is resumed, which may be long after. So a
// part that takes frames out of SHARDS pins first, in the entries that are settling, what the frames tell.

// Pin notes in erasures of a shard's topic that are settling how far they cover the shard. It is
// called before frames leave SHARDS that were there when the ledger was read: an erasure that is
// entered later knows the shard's end.
func Pin(ctx context.Context, reg *registry.Registry, ref schemas.ShardRef, settling ledger.Erasures) error {
	if len(settling) == 0 {
		return nil
	}
	t, has, err := tailOf(ctx, reg.JetStream(), ref)
	if err != nil || !has {
		return err
	}
	for i := range settling {
		for e := &settling[i]; e != nil; {
			if e, err = pinOne(ctx, reg, e, ref, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// pinOne is Pin for one erasure. Where its fence was raised since it was read it notes nothing, and returns the erasure as it is by now.
func pinOne(ctx context.Context, reg *registry.Registry, e *ledger.Erasure, ref schemas.ShardRef, t end) (raised *ledger.Erasure, err error) {
	if _, pinned := e.Bounds[ref.ID]; pinned {
		return nil, nil
	}
	bound, fixed, known := t.Pos, false, true
	if !e.Means(t.Source()) {
		if t.Pos <= e.Tails[ref.ID] {
			return nil, nil
		}
		if bound, fixed, err = edgeIn(ctx, reg.JetStream(), e, ref.ID, t); err != nil {
			return nil, err
		}
		known = fixed // else it is late already
	}
	higher := false
	now, err := reg.AmendErasure(ctx, e.Topic, e.ID, func(now *ledger.Erasure) bool {
		higher = now.State == ledger.Waiting && now.UpTo() != e.UpTo()
		return !higher && known && pin(now, ref.ID, bound, fixed)
	})
	if err == nil && higher {
		return &now, nil
	}
	if errors.Is(err, registry.ErrNotFound) {
		err = nil
	}
	return nil, err
}

// pin notes a position of a shard in an entry: of a shard that has a frame from above the fence the last
// that is covered, of another the last it has yet. It reports whether the entry says more than before.
func pin(e *ledger.Erasure, s schemas.Shard, pos uint64, fixed bool) bool {
	if e.State != ledger.Waiting {
		return false // another process settled it: its bounds hold
	}
	if fixed {
		if _, pinned := e.Bounds[s]; pinned {
			return false
		}
		if e.Bounds == nil {
			e.Bounds = map[schemas.Shard]uint64{}
		}
		e.Bounds[s] = pos
		return true
	}
	if pos <= e.Tails[s] {
		return false
	}
	if e.Tails == nil {
		e.Tails = map[schemas.Shard]uint64{}
	}
	e.Tails[s] = pos
	return true
}

// edgeIn is the last covered position of a shard whose last frame t came from above the fence, and
// whether the frames tell it.
func edgeIn(ctx context.Context, js jetstream.JetStream, e *ledger.Erasure, id schemas.Shard, t end) (bound uint64, exact bool, err error) {
	seq, err := streams.FindBehind(ctx, js, t.subject, e.UpTo(), e.Tails[id], t.Seq)
	if err != nil {
		return 0, false, err
	}
	first, err := streams.FrameFrom(ctx, js, t.subject, seq)
	if err != nil {
		return 0, false, err
	}
	before, err := before(ctx, js, t, first)
	if err != nil {
		return 0, false, err
	}
	bound, exact = edge(before, first, e.UpTo(), e.Tails[id])
	return bound, exact, nil
}

// before is the frame SHARDS holds at the position below first's, or first again
// when it holds none there.
func before(ctx context.Context, js jetstream.JetStream, t end, first schemas.Placed) (schemas.Placed, error) {
	if first.Pos == 1 {
		return first, nil
	}
	seq, err := streams.FindFrame(ctx, js, t.subject, first.Pos-1, t.Seq)
	if err != nil {
		return first, err
	}
	return streams.FrameFrom(ctx, js, t.subject, seq)
}

// edge is the last position up to the fence, given the first frame SHARDS holds
// from behind it and the one before. It is exact when nothing is missing between
// the two, or all that is was there when the erasure was entered, with the shard's
// end at known: else what is missing may have come from either side.
func edge(before, first schemas.Placed, fence schemas.Source, known uint64) (bound uint64, exact bool) {
	bound = first.Pos - 1
	return bound, bound == known || before.Pos == bound && before.Source().UpTo(fence)
}

// end is a shard's last frame, by its headers, and the shard's subject.
type end struct {
	streams.Tail
	subject string
}

// tailOf reads the last frame of one shard.
func tailOf(ctx context.Context, js jetstream.JetStream, ref schemas.ShardRef) (t end, has bool, err error) {
	t.subject = ref.Subject()
	msg, err := streams.DecideLast(ctx, js, schemas.StreamShards, t.subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return t, false, nil
	}
	if err != nil {
		return t, false, fmt.Errorf("erase: tail of %s: %w", ref, err)
	}
	t.Seq = msg.Sequence
	if t.Placed, err = schemas.ParsePlaced(msg.Header); err != nil {
		return t, false, nil // not a frame, so not a tail; verify names it
	}
	return t, true, nil
}
