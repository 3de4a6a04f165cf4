package erased

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/timer"
)

// ErrRedacted: an erasure was redacted, so that its filter judges nothing any more.
var ErrRedacted = errors.New("the erasure was redacted: its filter is not known any more")

// Row is a record of a front as the row that it becomes.
type Row struct {
	Event   schemas.Event
	Changed int64
	Seq     uint64
}

// id tells the rows of a frame apart.
func (r *Row) id() schemas.ID { return schemas.SequenceID(r.Changed, r.Seq, 0) }

// OfDocument is the row of a version of a document; its body must have been read.
func OfDocument(t *schemas.Topic, r *document.Record) Row {
	return Row{r.RowEvent(t), r.Changed, r.RowSeq()}
}

// OfTimer is the row of a transition of a timer; its own spec must have been read.
func OfTimer(r *timer.Record) (Row, error) {
	e, err := r.RowEvent()
	return Row{e, r.Changed, r.Seq}, err
}

// Sure judges a row without ClickHouse.
func Sure(t *schemas.Topic, e *ledger.Erasure, row Row) (filter.Result, error) {
	_, verdicts, err := evaluate(t, e, []Row{row})
	if err != nil {
		return filter.Unsure, err
	}
	return verdicts[0], nil
}

// Which says of each row whether an erasure means it. db is asked for those that are not sure.
func Which(ctx context.Context, db *tables.DB, t *schemas.Topic, e *ledger.Erasure, rows []Row) ([]bool, error) {
	out := make([]bool, len(rows))
	for len(rows) > 0 {
		n := portion(rows)
		if err := which(ctx, db, t, e, rows[:n], out[len(out)-len(rows):]); err != nil {
			return nil, err
		}
		rows = rows[n:]
	}
	return out, nil
}

// portion is how many of the rows go into one frame.
func portion(rows []Row) (n int) {
	for size := 0; n < min(len(rows), schemas.FrameRows) && size < schemas.FrameRawBytes; n++ {
		for i := range rows[n].Event.Attrs {
			size += len(rows[n].Event.Attrs[i].Text())
		}
	}
	return n
}

func which(ctx context.Context, db *tables.DB, t *schemas.Topic, e *ledger.Erasure, rows []Row, out []bool) error {
	r, verdicts, err := evaluate(t, e, rows)
	if err != nil {
		return err
	}
	unsure := map[string]int{}
	for i, v := range verdicts {
		if out[i] = v == filter.Yes; v == filter.Unsure {
			unsure[rows[i].id().String()] = i
		}
	}
	if len(unsure) == 0 {
		return nil
	}
	cond, params := e.Match("e")
	answer, err := db.Select(ctx, &tables.Select{
		SQL:    fmt.Sprintf("SELECT id FROM (%s) WHERE %s FORMAT TSV", tables.FreshSource(t, t.Version, 0, 0), cond),
		Params: params, Settings: map[string]string{"log_queries": "0"}, Fresh: [][]byte{r.Raw()}, FreshStructure: t.FrameStructure(t.Version),
	})
	if err != nil {
		return fmt.Errorf("what erasure %s means, by ClickHouse: %w", e.ID, err)
	}
	lines := bufio.NewScanner(answer)
	for lines.Scan() {
		if i, asked := unsure[strings.TrimSpace(lines.Text())]; asked {
			out[i] = true
		}
	}
	if err := errors.Join(lines.Err(), answer.Close()); err != nil {
		return fmt.Errorf("what erasure %s means, by ClickHouse: %w", e.ID, err)
	}
	return nil
}

// evaluate makes a frame of rows, and says of each what can be said without ClickHouse.
func evaluate(t *schemas.Topic, e *ledger.Erasure, rows []Row) (*frame.Reader, []filter.Result, error) {
	if e.Redacted {
		return nil, nil, fmt.Errorf("%w: erasure %s of topic %q", ErrRedacted, e.ID, t.Name)
	}
	b := frame.NewBuilder(t)
	for i := range rows {
		b.Append(&rows[i].Event, rows[i].Changed, rows[i].id())
	}
	f, payload := b.Encode()
	r := &frame.Reader{}
	if err := r.Open(payload, t, f.Schema); err != nil {
		return nil, nil, fmt.Errorf("rows of topic %q, for erasure %s: %w", t.Name, e.ID, err)
	}
	verdicts := make([]filter.Result, len(rows))
	then := *t // the names of the filter are of the schema of that time
	then.Fields = t.FieldsAt(e.Schema)
	where, err := filter.ParseAt(e.Where, &then, time.Time{})
	if err != nil {
		return r, verdicts, nil // unsure of all
	}
	by := where.On(r)
	at := make(map[schemas.ID]int, len(rows)) // a frame sorts its rows
	for i := range rows {
		at[rows[i].id()] = i
	}
	for i := range r.Rows() {
		row := at[r.ID(i)]
		if verdicts[row] = by.Of(i); !e.MayMean(rows[row].Seq, rows[row].Changed, rows[row].Event.UserID) {
			verdicts[row] = filter.No
		}
	}
	return r, verdicts, nil
}
