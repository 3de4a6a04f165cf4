package archived

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// shardsAtOnce is how many shards are asked side by side for their first frame above the
// head. Few have one: the active shards of the lanes.
const shardsAtOnce = 8

// Snapshot is how far a topic's lanes were routed, and its shards stored, at one moment.
// What it knows as stored is in ClickHouse for every read that begins later.
type Snapshot struct {
	topic   *schemas.Topic
	routed  map[string]checkpoint.Checkpoint
	entries []registry.Shard
	heads   map[schemas.Shard]uint64
}

// Take reads the checkpoints of a topic's lanes, then its shards, and the heads of those at the
// same time. Every frame up to a checkpoint has an entry by then.
func Take(ctx context.Context, js jetstream.JetStream, reg *registry.Registry, db *tables.DB, t *schemas.Topic) (*Snapshot, error) {
	s := &Snapshot{topic: t}
	g, gctx := fanout.WithContext(ctx)
	g.Go(func() (err error) {
		if s.routed, err = streams.Checkpoints(gctx, js, t.Name); err == nil {
			s.entries, err = reg.Shards(gctx, t.Name, 0)
		}
		return err
	})
	g.Go(func() (err error) {
		s.heads, err = db.Heads(gctx, t.Name)
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return s, nil
}

// UpTo says up to which sequence of its front each lane of a topic is stored in
// ClickHouse, all of it. A lane that nothing was routed of is at 0. A lane whose
// checkpoint does not fit its stream stands in it too: its router goes no further.
func UpTo(ctx context.Context, js jetstream.JetStream, reg *registry.Registry, db *tables.DB, t *schemas.Topic) (map[int]uint64, error) {
	s, err := Take(ctx, js, reg, db, t)
	if err != nil {
		return nil, err
	}
	return s.UpTo(ctx, js)
}

// Dropped are the topic's shards that retention took, or is taking, at the snapshot's moment.
func (s *Snapshot) Dropped() map[schemas.ShardRef]bool { return registry.DroppedOf(s.entries) }

// UpTo says what the function UpTo does, of the snapshot's moment. Heads that are older than
// the tails only make it say less.
func (s *Snapshot) UpTo(ctx context.Context, js jetstream.JetStream) (map[int]uint64, error) {
	tails, err := streams.Tails(ctx, js, s.topic.Name, nil)
	if err != nil {
		return nil, err
	}
	upTo := make(map[int]uint64, s.topic.Lanes)
	for token, cp := range s.routed {
		if lane, err := schemas.ParseLane(token); err == nil && cp.Front != "" {
			upTo[lane] = cp.Source
		}
	}
	var mu sync.Mutex
	g, gctx := fanout.WithContext(ctx)
	g.SetLimit(shardsAtOnce)
	for i := range s.entries {
		e := &s.entries[i]
		tail, ok := tails[e.ID]
		head := max(s.heads[e.ID], e.Floor)
		if !ok || tail.Pos <= head || e.Emptied() {
			continue
		}
		g.Go(func() error {
			first, err := firstAbove(gctx, js, schemas.ShardRef{Topic: s.topic.Name, Month: e.Month, ID: e.ID}, head, tail.Seq)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				upTo[e.ID.Lane()] = min(upTo[e.ID.Lane()], first-1)
			}
			return err
		})
	}
	return upTo, g.Wait()
}

// firstAbove is the sequence in the front of the first record of the first frame above a head.
func firstAbove(ctx context.Context, js jetstream.JetStream, ref schemas.ShardRef, head, tailSeq uint64) (uint64, error) {
	seq, err := streams.FindFrame(ctx, js, ref.Subject(), head+1, tailSeq)
	if err != nil {
		return 0, err
	}
	msg, err := streams.DecideNext(ctx, js, schemas.StreamShards, ref.Subject(), seq)
	if err != nil {
		return 0, fmt.Errorf("archived: the frame above position %d of %s: %w", head, ref, err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil {
		return 0, fmt.Errorf("archived: the frame above position %d of %s: %w", head, ref, err)
	}
	if p.SourceFirst == 0 {
		return p.SourceSeq, nil
	}
	return p.SourceFirst, nil
}
