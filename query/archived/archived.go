package archived

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// UpTo says up to which sequence of its front each lane of a topic is stored in
// ClickHouse, all of it. A lane that nothing was routed of is at 0. A lane whose
// checkpoint does not fit its stream stands in it too: its router goes no further.
func UpTo(ctx context.Context, js jetstream.JetStream, reg *registry.Registry, db *tables.DB, t *schemas.Topic) (map[int]uint64, error) {
	routed, err := streams.Checkpoints(ctx, js, t.Name)
	if err != nil {
		return nil, err
	}
	upTo := make(map[int]uint64, t.Lanes)
	for token, cp := range routed {
		if lane, err := schemas.ParseLane(token); err == nil && cp.Front != "" {
			upTo[lane] = cp.Source
		}
	}
	tails, err := streams.Tails(ctx, js, t.Name, nil)
	if err != nil {
		return nil, err
	}
	entries, err := reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return nil, err
	}
	heads, err := db.Heads(ctx, t.Name)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		e := &entries[i]
		tail, ok := tails[e.ID]
		head := max(heads[e.ID], e.Floor)
		if !ok || tail.Pos <= head || e.Emptied() {
			continue
		}
		first, err := firstAbove(ctx, js, schemas.ShardRef{Topic: t.Name, Month: e.Month, ID: e.ID}, head, tail.Seq)
		if err != nil {
			return nil, err
		}
		upTo[e.Lane] = min(upTo[e.Lane], first-1)
	}
	return upTo, nil
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
