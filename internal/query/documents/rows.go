package documents

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// readSettings bound every read, and let it show when an answer breaks off. Whatever the server's
// profile says, types are named by text, and a statement that reads its table twice sees one
// state of it: of a page the second part would else lack the version that the first one found.
var readSettings = map[string]string{
	"max_execution_time":                                 "30",
	"http_write_exception_in_output_format":              "0",
	"output_format_binary_encode_types_in_binary_format": "0",
	"enable_shared_storage_snapshot_in_query":            "1",
	"optimize_read_in_order":                             "1",
	"max_block_size":                                     "1024",
	"max_threads":                                        "1",
}

// keyColumns are what a page needs to know of a version, bodyColumns the rest. pageColumns
// are those of a page that is read with its bodies: where a row is need not be known then.
const (
	keyColumns  = "doc_id, path, toUnixTimestamp64Nano(created) AS c, toUnixTimestamp64Nano(ts) AS t, version, op, seq, month, shard"
	keyNames    = "doc_id, path, c, t, version, op, seq, month, shard" // of keyColumns
	bodyColumns = ", `by`, user_id, body"
	pageColumns = "doc_id, path, toUnixTimestamp64Nano(created) AS c, toUnixTimestamp64Nano(ts) AS t, version, op, seq, `by`, body"
)

// row is a version as ClickHouse answers it.
type row struct {
	ID, Path, Op, By, User string
	Created, Changed       int64
	Version, Seq           uint64
	Month                  uint32
	Shard                  uint64
	Body                   []byte // nil: it was not read
}

func (r *row) record(topic string) *document.Record {
	return &document.Record{
		Topic: topic, ID: r.ID, Path: r.Path, Seq: r.Seq, Op: r.Op, Version: r.Version, Created: r.Created, Changed: r.Changed, By: r.By, User: r.User,
		Stub: &schemas.FrontPlace{Month: schemas.Month(r.Month), Shard: schemas.Shard(r.Shard), Seq: r.Seq}, Body: r.Body,
	}
}

// rows reads versions by a condition; with keys alone, without their bodies. No table is
// no rows.
func (r *Reader) rows(ctx context.Context, t *schemas.Topic, keysOnly bool, where, tail string, params map[string]string) ([]*document.Record, error) {
	columns := keyColumns
	if !keysOnly {
		columns += bodyColumns
	}
	if params == nil {
		params = map[string]string{}
	}
	from, err := r.table(ctx, t, params)
	if err != nil {
		return nil, err
	}
	return r.selected(ctx, t, fmt.Sprintf("SELECT %s FROM %s WHERE %s %s", columns, from, where, tail), params)
}

func (r *Reader) selected(ctx context.Context, t *schemas.Topic, sql string, params map[string]string) ([]*document.Record, error) {
	answer, err := r.db.Select(ctx, &tables.Select{SQL: sql + " FORMAT RowBinaryWithNamesAndTypes", Params: params, Settings: readSettings})
	if errors.Is(err, tables.ErrNoTable) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("documents of topic %q: %w", t.Name, err)
	}
	defer func() { _ = answer.Close() }()
	var out []*document.Record
	if err := readRows(bufio.NewReaderSize(budget.Reader(ctx, answer, 2), 64<<10), func(r *row) { out = append(out, r.record(t.Name)) }); err != nil {
		return nil, fmt.Errorf("documents of topic %q: ClickHouse's answer: %w", t.Name, err)
	}
	return out, nil
}

// nanos is a time as a literal of the table's type.
func nanos(ns int64) string { return fmt.Sprintf("fromUnixTimestamp64Nano(%d, 'UTC')", ns) }

func sortBy(rs []*document.Record, less func(a, b *document.Record) bool) {
	sort.SliceStable(rs, func(i, j int) bool { return less(rs[i], rs[j]) })
}
