package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// storedRows reads the page's rows from ClickHouse, shard by shard in the page's
// direction, until no unread shard can have an event that belongs on it. bound is
// set when it stopped for MaxPageShards: nothing beyond it may be returned.
func (r *Reader) storedRows(ctx context.Context, p *plan, page *Page) (rows []row, bound *int64, err error) {
	shards, err := r.overlapping(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	near := func(s *registry.Shard) int64 { // the shard's end that the page meets first
		if p.asc {
			return s.MinTs
		}
		return s.MaxTs
	}
	beyond := func(ts, edge int64) bool { // ts lies further on than edge
		if p.asc {
			return ts > edge
		}
		return ts < edge
	}
	slices.SortFunc(shards, func(a, b registry.Shard) int {
		if p.asc {
			return cmp.Compare(a.MinTs, b.MinTs)
		}
		return cmp.Compare(b.MaxTs, a.MaxTs)
	})
	start := p.upper()
	if p.asc {
		start = p.lower()
	}
	for len(shards) > 0 {
		n := min(MaxPageShards, len(shards))
		more, err := r.readShards(ctx, p, shards[:n])
		if err != nil {
			return nil, nil, err
		}
		for i := range n {
			page.Shards = append(page.Shards, shards[i].Name())
		}
		rows = merge(more, rows, p)
		shards = shards[n:]
		if len(shards) == 0 {
			break
		}
		next := near(&shards[0])
		if len(rows) > p.limit && beyond(next, rows[len(rows)-1].ts) {
			break // full, and every unread shard lies further on
		}
		if beyond(next, start) {
			return rows, &next, nil
		}
		// The unread shard reaches as far as the page's own beginning: stopping
		// here would bring the next page nothing nearer. Read on.
	}
	return rows, nil, nil
}

// overlapping are the shards that may have events in the page's range.
func (r *Reader) overlapping(ctx context.Context, p *plan) ([]registry.Shard, error) {
	heads, err := r.reg.Heads(ctx, p.topic.Name)
	if err != nil {
		return nil, err
	}
	var out []registry.Shard
	for _, h := range heads {
		if h.Month.End() <= p.lower() || h.Month.Start() > p.upper() {
			continue
		}
		shards, err := r.reg.Shards(ctx, p.topic.Name, h.Month)
		if err != nil {
			return nil, err
		}
		for _, s := range shards {
			if s.Overlaps(p.lower(), p.upper()) {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

func (r *Reader) readShards(ctx context.Context, p *plan, shards []registry.Shard) ([]row, error) {
	cond, params := p.condition()
	keys := make([]string, len(shards))
	for i, s := range shards {
		keys[i] = fmt.Sprintf("(%d,%d)", uint32(s.Month), uint64(s.ID))
	}
	return r.collect(ctx, &tables.Select{
		SQL: fmt.Sprintf("SELECT %s FROM %s WHERE (month, shard) IN (%s) AND %s %s", columns(&p.topic),
			schemas.QuotedTable(r.db.Database, p.topic.Name), strings.Join(keys, ","), cond, p.order()),
		Params: params,
	})
}
