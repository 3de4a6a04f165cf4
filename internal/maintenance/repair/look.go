package repair

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// found is what registry, streams and tables say of one topic.
type found struct {
	alone          bool // it is not examined, and nothing of it is changed
	topic          schemas.Topic
	lost           bool // the registry does not have the topic: it was made up
	heads          map[schemas.Month]registry.Head
	entries        map[schemas.Shard]registry.Shard
	chains         map[schemas.Shard]chain
	counts         map[schemas.Shard]tables.Count
	erasureRecords map[schemas.Shard]ledger.ErasureRecord
	ledger         ledger.Erasures
	where          map[schemas.Shard]schemas.ShardRef
	// lanes has a checkpoint for each lane that has one, copies the registry's copies.
	lanes  map[string]streams.Routed
	copies map[string]checkpoint.Checkpoint
	lane   map[schemas.Shard]int // NoLane: unknown
	// routed is the rows of shards whose end SHARDS lost: those their frames tell of,
	// and above them those that ClickHouse has, or that the entry closed with.
	routed map[schemas.Shard]uint64
	// short are the shards that lack their end, and that is not settled. moved are
	// those whose entry went on in its life between the frames' reading and its own:
	// the two cannot be held against each other.
	short, moved map[schemas.Shard]bool
	state        []laneState // by lane
}

// tail is the last position SHARDS holds of a shard; 0: none.
func (t *found) tail(id schemas.Shard) uint64 {
	if c := t.chains[id]; len(c) > 0 {
		return c.last().pos
	}
	return 0
}

// given is the last position of a shard that was stored: ClickHouse has rows of it, or the
// registry knows that they are gone on purpose.
func (t *found) given(id schemas.Shard) uint64 {
	e, record := t.entries[id], t.erasureRecords[id]
	return given(&e, &record, t.counts[id].Head)
}

// given is found.given of one shard. Of a position whose rows an erasure took the shard's erasure record
// tells where the entry, which had it as its floor, was lost; not above where the shard was sealed, as
// one that forked was where ClickHouse had it.
func given(e *registry.Shard, record *ledger.ErasureRecord, head uint64) uint64 {
	upTo := uint64(math.MaxUint64)
	if e.Status != registry.Active && e.SealedAt > 0 {
		upTo = e.SealedAt
	}
	return max(e.Head(head), record.LastGone(upTo))
}

// end is the last position a shard ever had, as far as anything tells.
func (t *found) end(id schemas.Shard) uint64 {
	e := t.entries[id]
	end := max(t.given(id), t.tail(id))
	if e.Status != registry.Active && !(e.Status == registry.Sealed && t.unsettled(id)) {
		end = max(end, e.SealedAt)
	}
	return end
}

// fits reports whether EVENTS is what a lane's checkpoint saw. Where it is not, what the
// lane lost is named once it is known what it routes again (lanes.go).
func (t *found) fits(lane int) bool {
	return lane < 0 || lane >= len(t.state) || t.state[lane].known() == nil
}

// unsettled says whether a shard that was left lacks its end in SHARDS, and
// it is not yet known what became of it.
func (t *found) unsettled(id schemas.Shard) bool { return t.short[id] }

// refs are the shards that anything knows, in order.
func (t *found) refs() []schemas.ShardRef {
	out := make([]schemas.ShardRef, 0, len(t.where))
	for _, ref := range t.where {
		out = append(out, ref)
	}
	slices.SortFunc(out, func(a, b schemas.ShardRef) int {
		return cmp.Or(cmp.Compare(a.Month, b.Month), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// look reads everything a topic's plan needs but rows. Downstream first: what is
// stored meanwhile is then met as pending, never as missing. The entries are read
// twice, around the frames: that a shard lacks its end is said by what its entry
// knew before, and a range is too narrow by what it knows afterwards.
// What erasures took must be known whole, or a plan would bring it back.
func (r *Repairer) look(ctx context.Context, t *found, p *Plan) error {
	name, lists := t.topic.Name, r.lists(p)
	before, err := lists.Shards(ctx, name, 0)
	if err != nil {
		return err
	}
	if t.counts, err = r.db.Counts(ctx, name); err != nil {
		return err
	}
	t.where = map[schemas.Shard]schemas.ShardRef{}
	for id, c := range t.counts {
		t.where[id] = schemas.ShardRef{Topic: name, Month: c.Month, ID: id}
	}
	if t.erasureRecords, err = r.reg.ErasureRecords(ctx, name); err != nil {
		return err
	}
	if t.ledger, err = r.reg.Ledger(ctx, name); err != nil {
		return err
	}
	t.chains = map[schemas.Shard]chain{}
	_, err = streams.Frames(ctx, r.js, schemas.ShardsFilter(name), func(ref schemas.ShardRef, p schemas.Placed, seq uint64, at time.Time) error {
		t.chains[ref.ID] = t.chains[ref.ID].add(newLink(p, seq, at))
		t.where[ref.ID] = ref
		return nil
	})
	if err != nil {
		return err
	}
	// Checkpoints behind the frames they speak of.
	t.lanes = map[string]streams.Routed{}
	err = streams.EachCheckpoint(ctx, r.js, schemas.RoutedFilter(name), func(cp *streams.Routed) error {
		if cp.Err == nil {
			t.lanes[cp.Lane] = *cp
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("repair: checkpoints of %q: %w", name, err)
	}
	if t.copies, err = r.reg.Copies(ctx, name); err != nil {
		return err
	}
	// The registry last: entries are made and widened before frames are published.
	heads, err := lists.Heads(ctx, name)
	if err != nil {
		return err
	}
	t.heads = map[schemas.Month]registry.Head{}
	for _, h := range heads {
		t.heads[h.Month] = h
	}
	entries, err := lists.Shards(ctx, name, 0)
	if err != nil {
		return err
	}
	t.entries, t.moved = map[schemas.Shard]registry.Shard{}, map[schemas.Shard]bool{}
	for _, e := range entries {
		t.entries[e.ID] = e
		t.where[e.ID] = e.Ref()
	}
	t.short = registry.Unsettled(before, t.tail, func(id schemas.Shard) ledger.ErasureRecord { return t.erasureRecords[id] })
	for _, b := range before {
		e := t.entries[b.ID]
		t.moved[b.ID] = e.Status != b.Status || e.Until() != b.Until()
	}
	if err := r.compareLanes(ctx, t); err != nil {
		return err
	}
	t.lane, t.routed = map[schemas.Shard]int{}, map[schemas.Shard]uint64{}
	for id := range t.where {
		t.lane[id] = laneOf(&t.topic, id)
	}
	return nil
}

// laneOf is a shard's lane, as its id says. NoLane: no router of the topic made it.
func laneOf(t *schemas.Topic, id schemas.Shard) int {
	if lane := id.Lane(); lane < t.Lanes {
		return lane
	}
	return schemas.NoLane
}
