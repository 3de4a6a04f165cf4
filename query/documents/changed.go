package documents

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Changed returns up to limit documents that changed in a range of time (unix ns, from
// inclusive and to not), each with its last version in the range, in the order of that
// change, after a place in that order; and whether there are more.
func (r *Reader) Changed(ctx context.Context, t *schemas.Topic, from, to int64, after *Key, limit int) (docs []*document.Record, more bool, err error) {
	upTo, err := r.Archived(ctx, t)
	if err != nil {
		return nil, false, err
	}
	last := map[string]*document.Record{}
	if _, err := r.fresh(ctx, t, upTo, ground{}, func(rec *document.Record, erased bool) {
		if was := last[rec.ID]; !erased && rec.Changed >= from && rec.Changed < to && (was == nil || newer(rec, was)) {
			last[rec.ID] = rec
		}
	}); err != nil {
		return nil, false, err
	}
	beyond := "1"
	params := map[string]string{}
	if after != nil {
		beyond, params["id"] = fmt.Sprintf("(t, doc_id) > (%d, {id:String})", after.Created), after.ID
	}
	table, err := r.table(ctx, t, params)
	if err != nil {
		return nil, false, err
	}
	// Of several lives of an id the last one counts, also where its writer's clock was behind: its place is the same
	// before it is archived and after. What changed again above what is archived is read over.
	stored, err := r.selected(ctx, t, fmt.Sprintf(
		"SELECT doc_id, path, c, t, version, op, seq, month, shard FROM (SELECT d.doc_id AS doc_id, "+
			"argMax((d.path, toUnixTimestamp64Nano(d.created), toUnixTimestamp64Nano(d.ts), d.version, d.op, d.seq, d.month, d.shard), d.seq) AS n, "+
			"n.1 AS path, n.2 AS c, n.3 AS t, n.4 AS version, n.5 AS op, n.6 AS seq, n.7 AS month, n.8 AS shard "+
			"FROM %s AS d WHERE d.ts >= %s AND d.ts < %s GROUP BY doc_id) WHERE %s ORDER BY t, doc_id LIMIT %d",
		table, nanos(from), nanos(to), beyond, limit+1+len(last)), params)
	if err != nil {
		return nil, false, err
	}
	for _, rec := range stored {
		if was := last[rec.ID]; was == nil || newer(rec, was) {
			last[rec.ID] = rec
		}
	}
	place := func(r *document.Record) Key { return Key{r.Changed, r.ID} }
	for _, rec := range slices.Collect(maps.Values(last)) {
		if after == nil || after.before(place(rec)) {
			docs = append(docs, rec)
		}
	}
	sortBy(docs, func(a, b *document.Record) bool { return place(a).before(place(b)) })
	if more = len(docs) > limit; more {
		docs = docs[:limit]
	}
	return docs, more, nil
}
