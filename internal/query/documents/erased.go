package documents

import (
	"context"
	"fmt"
	"maps"

	"github.com/almanac-events/almanac/internal/query/erased"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/sql"
)

// An erasure hides what it means from its entry on, also before it is gone. Once it has
// ended, neither DOCS nor ClickHouse has any of it, unless DOCS is an older copy: so one that
// has ended hides as well.

// Meant says whether an erasure means a record of DOCS, by its users and times. Those in ask
// have a filter too, by which the body must be evaluated.
func Meant(l ledger.Erasures, r *document.Record) (yes bool, ask []ledger.Erasure) {
	for i := range l {
		switch e := &l[i]; {
		case !e.MayMean(r.RowSeq(), r.Changed, r.User):
		case e.Where == "":
			yes = true
		default:
			ask = append(ask, *e)
		}
	}
	return yes, ask
}

// Surely judges a record with its body by an erasure with a filter, without ClickHouse.
func Surely(t *schemas.Topic, e *ledger.Erasure, r *document.Record) (filter.Result, error) {
	return erased.Sure(t, e, erased.OfDocument(t, r))
}

// Erased reports whether an erasure means a record with its body.
func (r *Reader) Erased(ctx context.Context, t *schemas.Topic, rec *document.Record) (bool, error) {
	l, err := r.ledger.Of(ctx, t.Name)
	if err != nil {
		return false, err
	}
	yes, ask := Meant(l, rec)
	for i := 0; !yes && i < len(ask); i++ {
		if yes, err = r.meant(ctx, t, &ask[i], rec); err != nil {
			return false, fmt.Errorf("documents: %q: %w", rec.ID, err)
		}
	}
	return yes, nil
}

// meant has a record evaluated by an erasure with a filter.
func (r *Reader) meant(ctx context.Context, t *schemas.Topic, e *ledger.Erasure, rec *document.Record) (bool, error) {
	if !e.Redacted {
		is, err := erased.Which(ctx, r.db, t, e, []erased.Row{erased.OfDocument(t, rec)})
		return err == nil && is[0], err
	}
	// Its filter is not known any more. What it did not mean of that time was stored, and still is.
	rows, err := r.selected(ctx, t, fmt.Sprintf("SELECT "+keyColumns+" FROM "+sql.QuotedTable(r.db.Database, t.Name)+" WHERE %s AND path = {path:String} AND created = %s AND doc_id = {id:String} AND version = %d AND seq = %d LIMIT 1",
		sql.InLane(document.Lane(t, rec.ID)), nanos(rec.Created), rec.Version, rec.RowSeq()), map[string]string{"path": rec.Path, "id": rec.ID})
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%w: version %d is not there, and DOCS has it from before erasure %s, which was redacted, so that it may be of that; `almanac erase resume %s` decides it", ErrNoRow, rec.Version, e.ID, e.ID)
	}
	return false, err
}

// table is the topic's table without what erasures under way mean; their parameters are
// added to params.
func (r *Reader) table(ctx context.Context, t *schemas.Topic, params map[string]string) (string, error) {
	name := sql.QuotedTable(r.db.Database, t.Name)
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
	keep, more := ledger.Cover(l.Only(ledger.Waiting, ledger.Erasing)).Keep()
	maps.Copy(params, more)
	return keep, nil
}
