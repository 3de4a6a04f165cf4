package documents

import (
	"bufio"
	"context"
	"fmt"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/frame"
)

// matching returns the records, with their bodies, that fulfil a filter. ClickHouse evaluates
// them as the rows that they become: what is on its way and what is stored is selected in
// one way.
func (r *Reader) matching(ctx context.Context, t *schemas.Topic, where *filter.Expr, docs []*document.Record) (out []*document.Record, err error) {
	if where.All() {
		return docs, nil
	}
	b := frame.NewBuilder(t)
	var some []*document.Record
	for i, rec := range docs {
		ev := rec.Event(t)
		b.Append(&ev, rec.Changed, rowID(rec))
		if some = append(some, rec); !b.Full() && i < len(docs)-1 {
			continue
		}
		ids, err := r.matchingIDs(ctx, t, b, where)
		if err != nil {
			return nil, fmt.Errorf("documents of topic %q: those not stored yet: %w", t.Name, err)
		}
		for _, rec := range some {
			if ids[rowID(rec).String()] {
				out = append(out, rec)
			}
		}
		b.Reset()
		some = some[:0]
	}
	return out, nil
}

// rowID is the id of a record's row.
func rowID(r *document.Record) schemas.ID { return schemas.SequenceID(r.Changed, r.RowSeq(), 0) }

// matchingIDs lists the rows of a frame that fulfil a filter.
func (r *Reader) matchingIDs(ctx context.Context, t *schemas.Topic, b *frame.Builder, where *filter.Expr) (map[string]bool, error) {
	f, payload := b.Encode()
	var open frame.Reader
	if err := open.Open(payload, t, f.Schema); err != nil {
		return nil, err
	}
	cond, params := where.SQL()
	answer, err := r.db.Select(ctx, &tables.Select{
		SQL:    fmt.Sprintf("SELECT id FROM (%s) WHERE %s FORMAT TSV", tables.FreshSource(t, f.Schema, 0, 0), cond),
		Params: params, Settings: readSettings, Fresh: [][]byte{open.Raw()}, FreshStructure: t.FrameStructure(f.Schema),
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Close() }()
	ids := map[string]bool{}
	lines := bufio.NewScanner(answer)
	for lines.Scan() {
		ids[lines.Text()] = true
	}
	return ids, lines.Err()
}
