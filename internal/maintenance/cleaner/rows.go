package cleaner

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// readSettings bound the read of rows.
var readSettings = map[string]string{"max_execution_time": "60", "max_threads": "1", "output_format_json_quote_64bit_integers": "0"}

// rows reads the rows of records back. It returns where they are, by the records' own
// sequences: of those alone whose row says the same as the record does.
func (c *Cleaner) rows(ctx context.Context, w *walk, some []met) (map[uint64]schemas.FrontPlace, error) {
	want := make(map[uint64]*met, len(some))
	months := map[schemas.Month]bool{}
	first, last := some[0].Changed, some[0].Changed
	for i := range some {
		r := &some[i]
		want[r.Row] = r
		months[schemas.MonthOf(r.Changed)] = true
		first, last = min(first, r.Changed), max(last, r.Changed)
	}
	var in, seqs strings.Builder
	for m := range months {
		fmt.Fprintf(&in, ",%d", uint32(m))
	}
	for seq := range want {
		fmt.Fprintf(&seqs, ",%d", seq)
	}
	statement := sql.FrontRows{
		Table: sql.QuotedTable(c.cfg.DB.Database, w.topic.Name), Says: w.kind.Column,
		Months: in.String()[1:], FromSQL: nanos(first), ToSQL: nanos(last), Seqs: seqs.String()[1:],
	}.SQL()
	answer, err := c.cfg.DB.Select(ctx, &tables.Select{SQL: statement, Settings: readSettings})
	if errors.Is(err, tables.ErrNoTable) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cleaner: rows of topic %q: %w", w.topic.Name, err)
	}
	defer func() { _ = answer.Close() }()
	places := make(map[uint64]schemas.FrontPlace, len(want))
	d := json.NewDecoder(bufio.NewReaderSize(answer, 64<<10))
	for {
		var one struct {
			Seq   uint64 `json:"seq"`
			Ts    int64  `json:"t"`
			Says  string `json:"says"`
			Month uint32 `json:"m"`
			Shard uint64 `json:"s"`
		}
		if err := d.Decode(&one); errors.Is(err, io.EOF) {
			return places, nil
		} else if err != nil {
			return nil, fmt.Errorf("cleaner: rows of topic %q: ClickHouse's answer: %w", w.topic.Name, err)
		}
		if r := want[one.Seq]; r != nil && r.Changed == one.Ts && w.kind.Says(r.Record) == one.Says {
			places[one.Seq] = schemas.FrontPlace{Month: schemas.Month(one.Month), Shard: schemas.Shard(one.Shard), Seq: one.Seq}
		}
	}
}

// nanos is a time as a literal of the tables' type.
func nanos(ns int64) string { return fmt.Sprintf("fromUnixTimestamp64Nano(%d, 'UTC')", ns) }
