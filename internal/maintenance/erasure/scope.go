package erasure

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// scope is which rows of a shard an erasure covers.
type scope struct {
	part schemas.ShardRef
	// bound is the last position that is covered.
	bound uint64
}

func (s *scope) whole() bool { return s.bound == math.MaxUint64 }

// covered is the rows of the scope that an erasure means.
func covered(e *ledger.Erasure, s *scope, prefix string) tables.Condition {
	cond, params := e.Match(prefix)
	if !s.whole() {
		cond += fmt.Sprintf(" AND pos <= %d", s.bound)
	}
	return tables.Condition{SQL: cond, Params: params}
}

// bound is the last position of a shard that is covered: every one of a
// shard whose last frame came before the fence, none of a shard that began behind
// it. A shard that lost its tail is covered when no frame can come any more.
func bound(e *ledger.Erasure, s *registry.Shard, tail end, has bool) uint64 {
	if b, ok := e.Bounds[s.ID]; ok {
		return b
	}
	if has && !e.Means(tail.Source()) || !has && s.Status == registry.Active {
		return 0
	}
	return math.MaxUint64
}

// entries reads a topic's shards and their tails. The entries come first: a shard that is
// sealed there has its last frame in SHARDS.
func (x *Eraser) entries(ctx context.Context, topic string) ([]registry.Shard, map[schemas.Shard]streams.Tail, error) {
	shards, err := x.cfg.Registry.Shards(ctx, topic, 0)
	if err != nil {
		return nil, nil, err
	}
	tails, err := streams.Tails(ctx, x.js, topic, nil)
	return shards, tails, err
}

// bounds finds the last covered position of the shards that may still grow, or
// have grown beyond the fence. It must be called once everything up to the fence
// is in SHARDS.
func (x *Eraser) bounds(ctx context.Context, e *ledger.Erasure) (map[schemas.Shard]uint64, error) {
	shards, tails, err := x.entries(ctx, e.Topic)
	if err != nil {
		return nil, err
	}
	out := map[schemas.Shard]uint64{}
	for i := range shards {
		s := &shards[i]
		last, has := tails[s.ID]
		t := end{last, s.Ref().Subject()}
		pinned, known := e.Bounds[s.ID]
		switch {
		case known:
			out[s.ID] = pinned
		case !has:
			if s.Status == registry.Active {
				out[s.ID] = 0
			}
		case !e.Means(t.Source()) && t.Pos > e.Tails[s.ID]:
			bound, exact, err := edgeIn(ctx, x.js, e, s.ID, t)
			if err != nil {
				return nil, err
			}
			if !exact && s.Overlaps(e.From, e.To) && !s.Gone() {
				if err := x.late(ctx, e, s, bound); err != nil {
					return nil, err
				}
				bound, exact = e.Tails[s.ID], true // what lies above, another erasure took
			}
			if exact {
				out[s.ID] = bound
			}
		case s.Status == registry.Active:
			out[s.ID] = t.Pos
		}
	}
	return out, nil
}

// late is ErrLate, unless another erasure that was carried out means all that e does: then nothing
// that e means can be left where it is not known what e covers.
func (x *Eraser) late(ctx context.Context, e *ledger.Erasure, s *registry.Shard, bound uint64) error {
	all, err := x.cfg.Registry.Ledger(ctx, e.Topic)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(o ledger.Erasure) bool { return o.Ended() && o.Includes(e) }) {
		return nil
	}
	return fmt.Errorf("%w: %s no longer has position %d of %s, so whether the erasure %s covers it is not known. Erase the same once more with `almanac erase`, which takes all of it; then `almanac erase resume %s` ends this one too",
		ErrLate, schemas.StreamShards, bound, s.Name(), e.ID, e.ID)
}

// scopes are the scopes of the shards that may hold events of the erasure.
func (x *Eraser) scopes(ctx context.Context, e *ledger.Erasure) (map[schemas.Shard]*scope, error) {
	shards, tails, err := x.entries(ctx, e.Topic)
	if err != nil {
		return nil, err
	}
	out := map[schemas.Shard]*scope{}
	for i := range shards {
		s := &shards[i]
		// A closed shard without rows has the range it had when it was made: none.
		if !s.Overlaps(e.From, e.To) || s.Gone() {
			continue
		}
		last, has := tails[s.ID]
		tail := end{last, s.Ref().Subject()}
		if sc := scopeOf(e, s, tail, has); sc != nil {
			out[s.ID] = sc
		}
	}
	return out, nil
}

// tail reads the last frame of one shard.
func (x *Eraser) tail(ctx context.Context, s *registry.Shard) (t end, has bool, err error) {
	return tailOf(ctx, x.js, s.Ref())
}

// scopeOf is the erasure's scope in one shard; nil when nothing of it is covered.
func scopeOf(e *ledger.Erasure, s *registry.Shard, tail end, has bool) *scope {
	if b := bound(e, s, tail, has); b > 0 {
		return &scope{part: s.Ref(), bound: b}
	}
	return nil
}

// matcher lets ClickHouse find the events an erasure means among frames.
type matcher struct {
	x      *Eraser
	e      *ledger.Erasure
	topic  *schemas.Topic
	reader frame.Reader

	blocks [][]byte
	size   int
	schema int
	ids    []string
}

// maxMatchBytes is what one statement takes, decompressed, give or take a frame.
const maxMatchBytes = 32 << 20

// add takes a frame; one that the erasure cannot concern is passed over.
func (m *matcher) add(ctx context.Context, f schemas.Frame, payload []byte) error {
	if f.MaxTs < m.e.From || f.MinTs > m.e.To {
		return nil
	}
	if f.Schema != m.schema || m.size >= maxMatchBytes {
		if err := m.flush(ctx); err != nil {
			return err
		}
	}
	if err := m.reader.Open(payload, m.topic, f.Schema); err != nil {
		return fmt.Errorf("erase: a frame of topic %q: %w", m.topic.Name, err)
	}
	m.schema = f.Schema
	m.blocks = append(m.blocks, slices.Clone(m.reader.Raw()))
	m.size += len(m.reader.Raw())
	return nil
}

func (m *matcher) flush(ctx context.Context) error {
	if len(m.blocks) == 0 {
		return nil
	}
	cond, params := m.e.Match("e")
	ids, err := m.x.cfg.Reader.MatchingIDs(ctx, m.topic, m.schema, m.blocks, cond, maps.Clone(params))
	m.ids = append(m.ids, ids...)
	m.blocks, m.size = nil, 0
	return err
}
