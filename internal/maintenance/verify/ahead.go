package verify

import (
	"context"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// aheadShards is how many shards are asked about together before each of them is compared. A statement about one looks at
// every part of the table, so that one each would take as long as the square of the shards.
const aheadShards = 1000

// ahead is what ClickHouse answered about several shards, before each of them is compared. It is a reconcile.Table that
// gives an answer once: who asks again wants to know how it is by now.
type ahead struct {
	*tables.DB
	topic    string
	at       map[schemas.ShardRef]tables.Group
	weighted map[schemas.ShardRef]tables.Weighted
	asked    map[schemas.ShardRef]tables.End
}

// askAhead asks about those of some shards that have rows and are not taken from an earlier proof.
func (v *Verifier) askAhead(ctx context.Context, l *look, entries []registry.Shard) (a *ahead, err error) {
	a = &ahead{DB: v.db, topic: l.topic.Name, asked: map[schemas.ShardRef]tables.End{}}
	var heads, weighed []tables.End
	for i := range entries {
		e := &entries[i]
		tail, h := l.tails[e.ID], l.frames.held[e.ID]
		end := tables.End{Ref: e.Ref(), Pos: e.Head(l.stored[e.ID].Head)}
		if _, taken := l.proofs.taken(e, tail, &l.gone, h); taken || e.Gone() || end.Pos == 0 {
			continue
		}
		heads = append(heads, end)
		if h != nil && h.first <= end.Pos && end.Pos <= h.last {
			end.Least = h.first
			weighed = append(weighed, end)
		}
		a.asked[end.Ref] = end
	}
	if a.at, err = v.db.AtEnds(ctx, a.topic, heads); err != nil {
		return nil, err
	}
	a.weighted, err = v.db.WeightedIDs(ctx, a.topic, weighed)
	return a, err
}

// At implements reconcile.Table.
func (a *ahead) At(ctx context.Context, ref schemas.ShardRef, pos uint64) (tables.Group, error) {
	if asked, ok := a.asked[ref]; !ok || asked.Pos != pos {
		return a.DB.At(ctx, ref, pos)
	}
	delete(a.asked, ref)
	if g, has := a.at[ref]; has {
		return g, nil
	}
	return tables.Group{Pos: pos}, nil
}

// weigh is the sums of a shard's ids up to a position.
func (a *ahead) weigh(ctx context.Context, end tables.End) (tables.Weighted, error) {
	if w, has := a.weighted[end.Ref]; has {
		return w, nil
	}
	of, err := a.WeightedIDs(ctx, a.topic, []tables.End{end})
	return of[end.Ref], err
}
