package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// addNearest adds what ClickHouse has of a group of shards as far as the page goes,
// by its reach where that is enough.
func (w *walk) addNearest(ctx context.Context, above *recent.Above, rows []row) (_ []row, err error) {
	group := above.Shards()
	read := len(group)
	defer func() {
		for i := range group {
			if i < read || group[i].Waits() {
				w.read = append(w.read, group[i].Name())
			}
		}
	}()
	settings := w.p.settings()
	for n, spare := range spares {
		edge, ok := w.p.reach(group, spare)
		if !ok {
			break
		}
		near := len(w.p.upTo(group, edge))
		if rows, err = w.addStored(ctx, above.Part(0, near), rows, &position{ts: edge}, settings); err != nil {
			return nil, err
		}
		if len(rows) > w.p.limit && !w.p.beyond(rows[w.p.limit].ts, edge) {
			read = near // the page is full, and what the others have lies further on
			return rows, nil
		}
		if n == len(spares)-1 && !w.p.where.All() {
			settings = rareSettings
		}
	}
	return w.addStored(ctx, above, rows, nil, settings)
}

// addStored adds what ClickHouse has of some shards, up to an edge, if given.
func (w *walk) addStored(ctx context.Context, above *recent.Above, rows []row, edge *position, settings map[string]string) ([]row, error) {
	if full := edgeOf(rows, w.p); edge == nil || full != nil && w.p.beyond(edge.ts, full.ts) {
		edge = full
	}
	var keys []schemas.ShardRef
	lo, hi := w.p.within(edge)
	shards := above.Shards()
	for i := range shards {
		// What was stored since is among the frames.
		if s := shards[i].Stored(); s.Rows > 0 && s.MaxTs >= lo && s.MinTs <= hi {
			keys = append(keys, shards[i].Ref())
		}
	}
	if len(keys) == 0 {
		return rows, nil
	}
	stored, err := w.r.collect(ctx, w.r.storedPage(w.p, keys, edge, settings))
	if err != nil {
		return nil, err
	}
	return merge(stored, rows, w.p), nil
}

// storedPage is the read of some shards' rows. What lies beyond edge, if given,
// is of no use to the page.
func (r *Reader) storedPage(p *plan, keys []schemas.ShardRef, edge *position, settings map[string]string) *tables.Select {
	cond, params := p.condition(p.within(edge))
	return &tables.Select{
		Settings: settings,
		SQL: fmt.Sprintf("SELECT %s FROM %s WHERE %s AND %s %s", p.columns(params),
			sql.QuotedTable(r.db.Database, p.topic.Name), tables.InShards(keys), cond, p.order()),
		Params: params,
	}
}

// Estimate is what ClickHouse plans to read for a page, by its indexes: more than
// it does where the page is full before, and less where it is not full then.
type Estimate struct {
	Parts uint64 `json:"parts"`
	Rows  uint64 `json:"rows"`
	// Shards are those it would be read from first, by their public names.
	Shards []string `json:"shards"`
}

// Explain asks ClickHouse what it would read for a page at first: of its first shards
// what lies within its reach.
func (r *Reader) Explain(ctx context.Context, req Request) (Estimate, error) {
	out := Estimate{Shards: []string{}}
	p, err := r.plan(ctx, req)
	if err != nil {
		return out, err
	}
	w, err := r.begin(ctx, p)
	if err != nil || len(w.queue) == 0 {
		return out, err
	}
	group, edge := w.queue[:min(MaxPageShards, len(w.queue))], (*position)(nil)
	if far, ok := p.reach(group, spares[0]); ok {
		group, edge = p.upTo(group, far), &position{ts: far}
	}
	var keys []schemas.ShardRef
	for i := range group {
		keys, out.Shards = append(keys, group[i].Ref()), append(out.Shards, group[i].Name())
	}
	s := r.storedPage(p, keys, edge, p.settings())
	s.SQL, s.Settings = "SELECT toUInt64(sum(parts)) AS parts, toUInt64(sum(rows)) AS rows FROM (EXPLAIN ESTIMATE "+s.SQL+") FORMAT JSONEachRow", readSettings
	err = r.lines(ctx, s, func(line []byte) error { return json.Unmarshal(line, &out) })
	if errors.Is(err, tables.ErrNoTable) {
		return out, nil // no sink has stored anything yet
	}
	return out, err
}
