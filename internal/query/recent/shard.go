package recent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Shard is a shard as a read found it: its entry, whose range is exact where all of it is
// stored, and then its head. Snapshot.Shards alone makes one.
type Shard struct {
	entry
	// stored is what ClickHouse has of it, up to the head. Of a closed shard only
	// the registry is asked: it is stored whole.
	stored schemas.Stored
	// tail is the shard's last frame in SHARDS, when that is above the head.
	tail *streams.Tail
}

type entry = registry.Shard

// Stored is what ClickHouse has of it, as far as the read knows.
func (s *Shard) Stored() schemas.Stored { return s.stored }

// Waits reports that SHARDS has frames of it above its head.
func (s *Shard) Waits() bool { return s.tail != nil }

// Open says that it may get rows while it is read.
func (s *Shard) Open() bool { return s.Status != registry.Closed }

// Shards are the shards of a month that may have events in a range, in its direction: what
// the registry has of them, and the heads of those that are not closed.
func (s *Snapshot) Shards(ctx context.Context, m schemas.Month, r Range) ([]Shard, error) {
	return s.shards(ctx, m, r, snapshotAge)
}

// shards is Shards with heads of at most an age, where the index goes by those of before.
func (s *Snapshot) shards(ctx context.Context, m schemas.Month, r Range, age time.Duration) ([]Shard, error) {
	entries, err := s.x.known.Overlapping(ctx, s.topic, m, r.From, r.To, s.read)
	if err != nil {
		return nil, err
	}
	var out []Shard
	var keys []schemas.ShardRef
	for _, e := range entries {
		if e.Gone() {
			continue
		}
		out = append(out, Shard{entry: e, stored: schemas.Stored{Rows: e.Rows, MinTs: e.MinTs, MaxTs: e.MaxTs}})
		if out[len(out)-1].Open() {
			s.x.heads.raise(e.ID, e.Floor)
			keys = append(keys, e.Ref())
		}
	}
	if len(keys) > 0 {
		stored, tails, asked, err := s.headsOf(ctx, keys, age)
		if err != nil {
			return nil, err
		}
		for i := range out {
			if out[i].Open() {
				out[i].complete(stored, tails)
				if last, ok := tails[out[i].ID]; ok && out[i].tail == nil {
					s.x.wholeUpTo(&last, asked)
				}
			}
		}
		out = slices.DeleteFunc(out, func(e Shard) bool {
			return e.tail == nil && e.stored.Rows == 0 || !e.Overlaps(r.From, r.To)
		})
	}
	slices.SortFunc(out, func(a, b Shard) int {
		if r.Ascending {
			return cmp.Or(cmp.Compare(a.MinTs, b.MinTs), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Or(cmp.Compare(b.MaxTs, a.MaxTs), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// complete adds the head and the last frame of a shard that is not closed, and
// its exact range where all of it is stored.
func (s *Shard) complete(stored map[schemas.Shard]schemas.Stored, tails map[schemas.Shard]streams.Tail) {
	s.stored = stored[s.ID]
	s.stored.Head = s.Head(s.stored.Head)
	if last, ok := tails[s.ID]; ok {
		s.Rows, s.Bytes = last.ShardRows, last.ShardBytes
		if last.Pos > s.stored.Head {
			s.tail = &last
			return
		}
	}
	s.MinTs, s.MaxTs = s.stored.MinTs, s.stored.MaxTs
}
