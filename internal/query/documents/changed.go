package documents

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Changed returns up to limit documents of a range that changed in its time, each with its last
// version in that, in the order of that change, after a place in that order; and whether there
// are more. The filter is over that version. Bodies are not read.
func (r *Reader) Changed(ctx context.Context, t *schemas.Topic, g Range, after *Key, limit int) (docs []*document.Record, more bool, err error) {
	from, to := g.From, g.To
	upTo, err := r.Archived(ctx, t)
	if err != nil {
		return nil, false, err
	}
	last := map[string]*document.Record{}
	if _, err := r.fresh(ctx, t, upTo, seenEmpty{}, func(rec *document.Record, erased bool) {
		if was := last[rec.ID]; !erased && rec.Changed >= from && rec.Changed < to && (was == nil || newer(rec, was)) {
			last[rec.ID] = rec
		}
	}); err != nil {
		return nil, false, err
	}
	beyond := "1"
	params := map[string]string{}
	if after != nil {
		beyond, params["id"] = fmt.Sprintf("(ts, doc_id) > (%s, {id:String})", nanos(after.Created)), after.ID
	}
	table, err := r.table(ctx, t, params)
	if err != nil {
		return nil, false, err
	}
	// Of several lives of an id the last one counts, also where its writer's clock was behind: its place is the same
	// before it is archived and after. What changed again above what is archived is read over.
	meant, parts := g.Where.SQL()
	maps.Copy(params, parts)
	within := fmt.Sprintf("ts >= %s AND ts < %s", nanos(from), nanos(to))
	stored, err := r.selected(ctx, t, fmt.Sprintf("SELECT %s, `by` FROM %s WHERE %s AND %s AND (doc_id, seq) IN (SELECT doc_id, max(seq) FROM %s WHERE %s GROUP BY doc_id) AND (%s) AND %s ORDER BY ts, doc_id LIMIT %d "+
		"SETTINGS prefer_column_name_to_alias = 1", keyColumns, table, within, g.paths(params), table, within, meant, beyond, limit+1+len(last)), params)
	if err != nil {
		return nil, false, err
	}
	for _, rec := range stored {
		if was := last[rec.ID]; was == nil || newer(rec, was) {
			last[rec.ID] = rec
		}
	}
	var way []*document.Record
	place := func(r *document.Record) Key { return Key{r.Changed, r.ID} }
	for _, rec := range slices.Collect(maps.Values(last)) {
		switch {
		case after != nil && !after.before(place(rec)) || !g.under(rec.Path):
		case rec.Stub == nil: // it is on its way: what is stored was evaluated
			way = append(way, rec)
		default:
			docs = append(docs, rec)
		}
	}
	if way, err = r.matching(ctx, t, g.Where, way); err != nil {
		return nil, false, err
	}
	docs = append(docs, way...)
	sortBy(docs, func(a, b *document.Record) bool { return place(a).before(place(b)) })
	if more = len(docs) > limit; more {
		docs = docs[:limit]
	}
	return docs, more, nil
}
