package model

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

var errConflict = errors.New("conflict")

// bucket is the registry's KV bucket: a head entry a month and an entry a shard,
// each with its revision, and the topic's rotation, which operators change.
type bucket struct {
	rev    uint64
	heads  map[schemas.Month]*entry[registry.Head]
	past   []entry[registry.Head] // former head entries: what a replica that lags would answer
	shards map[schemas.Shard]*entry[registry.Shard]
	order  []schemas.Shard // by age
	rotate schemas.Rotation
}

// entry is a key's value; revision 0 stands for no key.
type entry[V any] struct {
	rev   uint64
	value V
}

func newBucket() *bucket {
	return &bucket{
		heads: map[schemas.Month]*entry[registry.Head]{}, shards: map[schemas.Shard]*entry[registry.Shard]{},
	}
}

// head reads a head entry; the maps are the reader's own.
func (b *bucket) head(m schemas.Month) entry[registry.Head] { return own(b.heads[m]) }

func own(e *entry[registry.Head]) entry[registry.Head] {
	if e == nil {
		return entry[registry.Head]{}
	}
	out := *e
	out.value.Active, out.value.Retired, out.value.Youngest = maps.Clone(e.value.Active), maps.Clone(e.value.Retired), maps.Clone(e.value.Youngest)
	return out
}

// lagging is an entry as it may have been a few commits ago.
func (b *bucket) lagging(h entry[registry.Head], commits int) entry[registry.Head] {
	if i := len(b.past) - 1 - commits; i >= 0 && b.past[i].value.Month == h.value.Month {
		return own(&b.past[i])
	}
	return h
}

func (b *bucket) shard(id schemas.Shard) entry[registry.Shard] {
	if e := b.shards[id]; e != nil {
		return *e
	}
	return entry[registry.Shard]{}
}

// commit writes entries, all or none, each under the expectation that it still
// has the revision it was read with. It sets their new revisions.
func (b *bucket) commit(h *entry[registry.Head], shards ...*entry[registry.Shard]) error {
	if h != nil && b.head(h.value.Month).rev != h.rev {
		return errConflict
	}
	for _, s := range shards {
		if b.shard(s.value.ID).rev != s.rev {
			return errConflict
		}
	}
	for _, s := range shards {
		if s.rev == 0 {
			b.order = append(b.order, s.value.ID)
		}
		b.rev++
		s.rev = b.rev
		kept := *s
		b.shards[s.value.ID] = &kept
	}
	if h != nil {
		b.rev++
		h.rev = b.rev
		kept := own(h)
		b.heads[h.value.Month] = &kept
		b.past = append(b.past, own(&kept))
	}
	return nil
}

// write asks the bucket to commit. A late request brings the same values.
func (p *process) write(what string, h *entry[registry.Head], shards ...*entry[registry.Shard]) error {
	w := p.w
	sentHead := own(h)
	sentShards := make([]entry[registry.Shard], len(shards))
	for i, s := range shards {
		sentShards[i] = *s
	}
	late := func() {
		var head *entry[registry.Head]
		if h != nil {
			again := own(&sentHead)
			head = &again
		}
		again := slices.Clone(sentShards)
		refs := make([]*entry[registry.Shard], len(again))
		for i := range again {
			refs[i] = &again[i]
		}
		_ = w.bucket.commit(head, refs...) // the answer is lost
	}
	return p.ask(call{what: what, at: w.nats, late: late, do: func() error { return w.bucket.commit(h, shards...) }})
}

func (p *process) readHead(m schemas.Month) (h entry[registry.Head], err error) {
	err = p.read("read head entry", p.w.nats, func() { h = p.w.bucket.head(m) })
	return h, err
}

func (p *process) readShard(id schemas.Shard) (s entry[registry.Shard], err error) {
	err = p.read("read shard entry", p.w.nats, func() { s = p.w.bucket.shard(id) })
	return s, err
}

// place is the active shard of a lane's month; the first call makes it.
func (p *process) place(m schemas.Month, lane int, from registry.Point) (entry[registry.Shard], error) {
	for {
		h, err := p.readHead(m)
		if p.w.broken(PlaceReadsReplica) {
			h = p.w.bucket.lagging(h, p.w.rng.IntN(8))
		}
		if err != nil {
			return entry[registry.Shard]{}, err
		}
		if id, ok := h.value.Active[lane]; ok {
			return p.readShard(id)
		}
		h.value.Month = m
		if s, err := p.advance(h, lane, from); !errors.Is(err, errConflict) {
			return s, err
		}
	}
}

// rotate gives the lane of s a new active shard and retires s. When another
// router rotated first, its shard is the answer.
func (p *process) rotate(s entry[registry.Shard], reason string, leftAt uint64, from registry.Point) (entry[registry.Shard], error) {
	for {
		h, err := p.readHead(s.value.Month)
		if err != nil {
			return entry[registry.Shard]{}, err
		}
		if id := h.value.Active[s.value.ID.Lane()]; id != s.value.ID {
			return p.readShard(id)
		}
		old, err := p.readShard(s.value.ID)
		if err != nil {
			return entry[registry.Shard]{}, err
		}
		old.value.Reason, old.value.LeftAt = reason, leftAt
		if h.value.Retired == nil {
			h.value.Retired = map[schemas.Shard]int{}
		}
		h.value.Retired[s.value.ID] = s.value.ID.Lane()
		next, err := p.advance(h, s.value.ID.Lane(), from, &old)
		if err == nil {
			p.w.saw(Rotations)
		}
		if !errors.Is(err, errConflict) {
			return next, err
		}
	}
}

// advance gives the lane a new active shard, in one commit with the head entry
// and more. Its id does not tell its age.
func (p *process) advance(h entry[registry.Head], lane int, from registry.Point, more ...*entry[registry.Shard]) (entry[registry.Shard], error) {
	m := h.value.Month
	p.w.shardsMade++
	s := entry[registry.Shard]{value: registry.Shard{
		Month: m, ID: p.w.newShard(lane), Order: h.value.Order(lane, from), Status: registry.Active,
		MinTs: m.End(), MaxTs: m.Start() - 1, // empty: overlaps nothing
	}}
	if h.value.Active == nil {
		h.value.Active = map[int]schemas.Shard{}
	}
	h.value.Active[lane] = s.value.ID
	h.value.Made(&s.value)
	if p.w.broken(OrderByID) {
		s.value.Order = registry.Order{Point: registry.Point{Seq: uint64(s.value.ID)}}
	}
	err := p.write("make shard", &h, append(more, &s)...)
	return s, err
}

// widenStep rounds a shard's range outwards.
const widenStep = int64(time.Minute)

// widen makes the shard's range cover lo to hi. It must have succeeded before
// frames with such events are published.
func (p *process) widen(s *entry[registry.Shard], lo, hi int64, rows uint64) error {
	for conflicts := 0; ; conflicts++ {
		v := &s.value
		if lo >= v.MinTs && hi <= v.MaxTs {
			return nil
		}
		if v.Status != registry.Active && (conflicts > 0 || !p.w.broken(WidenChecksLate)) && !p.w.broken(WidenAnyStatus) {
			return errConflict // another router left the shard and sealed it
		}
		next := *s
		if lo < v.MinTs {
			next.value.MinTs = max(lo-lo%widenStep, v.Month.Start())
		}
		if hi > v.MaxTs {
			next.value.MaxTs = min(hi-hi%widenStep+widenStep-1, v.Month.End()-1)
		}
		next.value.Rows = rows
		err := p.write("widen", nil, &next)
		if err == nil {
			*s = next
			return nil
		}
		if !errors.Is(err, errConflict) {
			return err
		}
		if *s, err = p.readShard(v.ID); err != nil {
			return err
		}
	}
}

// seal states that no frame of the shard will ever stand above pos.
func (p *process) seal(m schemas.Month, id schemas.Shard, ended registry.Point, pos, rows uint64) error {
	for {
		h, err := p.readHead(m)
		if err != nil {
			return err
		}
		s, err := p.readShard(id)
		if err != nil {
			return err
		}
		if _, retired := h.value.Retired[id]; !retired || s.value.Status != registry.Active {
			return nil
		}
		if p.w.broken(EndedIsBegun) {
			ended = s.value.Order.Point
		}
		s.value.Status, s.value.Ended, s.value.SealedAt, s.value.Rows = registry.Sealed, ended, pos, rows
		delete(h.value.Retired, id)
		if err = p.write("seal", &h, &s); err == nil {
			p.w.saw(Seals)
		}
		if !errors.Is(err, errConflict) {
			return err
		}
	}
}

// close states that the sealed shard is stored whole, with its exact numbers.
func (p *process) close(id schemas.Shard, rows uint64, minTs, maxTs int64) error {
	for {
		s, err := p.readShard(id)
		if err != nil || s.value.Status != registry.Sealed {
			return err
		}
		s.value.Status, s.value.Rows, s.value.MinTs, s.value.MaxTs = registry.Closed, rows, minTs, maxTs
		if err = p.write("close", nil, &s); err == nil {
			p.w.saw(Closes)
		}
		if !errors.Is(err, errConflict) {
			return err
		}
	}
}
