package documents

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/tables"
)

// An erasure hides what it means from its entry on, also before it is gone. Once it has
// ended, neither DOCS nor ClickHouse has any of it.

// Meant says whether an erasure means a record of DOCS, by its users and times, also one that
// has ended: DOCS may be an older copy. Those in ask are under way and have a filter too, which
// ClickHouse must judge.
func Meant(l ledger.Erasures, r *document.Record) (yes bool, ask []ledger.Erasure) {
	for _, e := range l {
		if e.Front == "" || r.RowSeq() > e.Fence || r.Changed < e.From || r.Changed > e.To {
			continue
		}
		switch users := len(e.Users) == 0 || slices.Contains(e.Users, r.User); {
		case users && e.Where != "" && e.State == ledger.Erased:
		case users && e.Where != "":
			ask = append(ask, e)
		case users:
			yes = true
		}
	}
	return yes, ask
}

// Erased reports whether an erasure under way means a record with its body.
func (r *Reader) Erased(ctx context.Context, t *schemas.Topic, rec *document.Record) (bool, error) {
	l, err := r.ledger.Of(ctx, t.Name)
	if err != nil {
		return false, err
	}
	yes, ask := Meant(l, rec)
	for i := 0; !yes && i < len(ask); i++ {
		if yes, err = r.matches(ctx, t, rec, &ask[i]); err != nil {
			return false, err
		}
	}
	return yes, nil
}

// matches has ClickHouse judge a record by an erasure's condition, as the row that it becomes.
func (r *Reader) matches(ctx context.Context, t *schemas.Topic, rec *document.Record, e *ledger.Erasure) (bool, error) {
	b := frame.NewBuilder(t)
	ev := rec.Event(t)
	b.Append(&ev, rec.Changed, schemas.SequenceID(rec.Changed, rec.Seq, 0))
	f, payload := b.Encode()
	var open frame.Reader
	if err := open.Open(payload, t, f.Schema); err != nil {
		return false, fmt.Errorf("documents: %q: %w", rec.ID, err)
	}
	cond, params := e.Match("e")
	n, err := r.db.CountFresh(ctx, t, f.Schema, [][]byte{open.Raw()}, tables.Condition{SQL: cond, Params: params})
	return n > 0, err
}

// table is the topic's table without what erasures under way mean; their parameters are
// added to params.
func (r *Reader) table(ctx context.Context, t *schemas.Topic, params map[string]string) (string, error) {
	name := schemas.QuotedTable(r.db.Database, t.Name)
	keep, err := r.keep(ctx, t, params)
	if err != nil || keep == "1" {
		return name, err
	}
	return "(SELECT * FROM " + name + " WHERE " + keep + ")", nil
}

// keep is the condition of rows that no erasure under way means, "1" without one; its
// parameters are added to params.
func (r *Reader) keep(ctx context.Context, t *schemas.Topic, params map[string]string) (string, error) {
	l, err := r.ledger.Of(ctx, t.Name)
	if err != nil {
		return "", err
	}
	keep, more := ledger.Cover(l.Only(ledger.Settling, ledger.Erasing)).Keep()
	maps.Copy(params, more)
	return keep, nil
}
