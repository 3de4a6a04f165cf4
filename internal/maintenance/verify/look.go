package verify

import (
	"context"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// look is what one run found of a topic; report adds it up.
type look struct {
	topic *schemas.Topic
	// As read, in this order: downstream first, so that what is routed or stored meanwhile shows as pending,
	// never as missing.
	gone    goneRows // before the rows were counted, and after
	proofs  *proofs
	stored  map[schemas.Shard]tables.Count
	entries []registry.Shard
	tails   map[schemas.Shard]streams.Tail
	routed  map[string]checkpoint.Checkpoint // by lane
	waiting uint64                           // events in EVENTS above the checkpoints
	frames  *reading
	present map[schemas.Shard]registry.Shard // entries again, after the frames: they cover them

	shards   []compared
	unknown  []ShardReport // of no entry
	problems []string      // of no shard
	letters  registry.Letters
}

// look reads what a topic's shards are compared with.
func (v *Verifier) look(ctx context.Context, t *schemas.Topic) (l *look, err error) {
	l = &look{topic: t}
	if l.gone.before, err = v.reg.ErasureRecords(ctx, t.Name); err != nil {
		return nil, err
	}
	if l.proofs, l.stored, err = v.loadProofs(ctx, t.Name); err != nil {
		return nil, err
	}
	if l.gone.after, err = v.reg.ErasureRecords(ctx, t.Name); err != nil {
		return nil, err
	}
	if l.entries, err = v.reg.Shards(ctx, t.Name, 0); err != nil {
		return nil, err
	}
	if l.tails, err = streams.Tails(ctx, v.js, t.Name, func(err error) { l.problem(err.Error()) }); err != nil {
		return nil, err
	}
	if l.routed, err = streams.Checkpoints(ctx, v.js, t.Name); err != nil {
		return nil, err
	}
	misfits, err := streams.Misfits(ctx, v.js, t, l.routed)
	if err != nil {
		return nil, err
	}
	l.problem(verifyMisfits(t.Name, misfits)...)
	forgotten, err := v.forgotten(ctx, t, l.routed)
	if err != nil {
		return nil, err
	}
	l.problem(forgotten...)
	if l.waiting, err = streams.Unrouted(ctx, v.js, t, l.routed, misfits, streams.Everything); err != nil {
		return nil, err
	}
	if l.frames, err = v.heldFrames(ctx, l.proofs); err != nil {
		return nil, err
	}
	if l.frames.unread > 0 {
		ends, err := v.unreadableEnds(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		l.problem(ends...)
	}
	months, present, err := v.months(ctx, t)
	if err != nil {
		return nil, err
	}
	l.present = present
	l.problem(months...)
	l.problem(verifyLanes(t, l.entries, l.routed)...)
	return l, nil
}

func (l *look) problem(problems ...string) { l.problems = append(l.problems, problems...) }
