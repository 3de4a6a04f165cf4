package query

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// row is an event as JSON, and where it stands in the order.
type row struct {
	position
	json json.RawMessage
}

// merge joins rows in the page's order, each event once (of two the one from
// stored, which has its shard and pos), and keeps one more than the limit, so
// that a page knows whether it is the last.
func merge(stored, fresh []row, p *plan) []row {
	rows := append(slices.Clip(stored), fresh...)
	slices.SortStableFunc(rows, func(a, b row) int {
		if p.asc {
			return a.compare(b.position)
		}
		return b.compare(a.position)
	})
	rows = slices.CompactFunc(rows, func(a, b row) bool { return a.ts == b.ts && a.id == b.id })
	return rows[:min(len(rows), p.limit+1)]
}

// before drops the rows at or beyond bound, which a shard that was not read may
// have more of.
func before(rows []row, bound int64, p *plan) []row {
	return slices.DeleteFunc(rows, func(r row) bool {
		if p.asc {
			return r.ts >= bound
		}
		return r.ts <= bound
	})
}

// readSettings bound every read of a page and shape its JSON.
var readSettings = map[string]string{
	"max_execution_time":                         "30",
	"date_time_output_format":                    "iso",
	"output_format_json_quote_64bit_integers":    "0",
	"output_format_json_escape_forward_slashes":  "0",
	"output_format_json_validate_utf8":           "1", // an answer is valid JSON whatever an event holds
	"output_format_json_named_tuples_as_objects": "1",
	"prefer_column_name_to_alias":                "1",
	"optimize_read_in_order":                     "1",
	"query_plan_optimize_lazy_materialization":   "1",
}

// unfilteredSettings are for rows that only a range selects. Nearly every row of a
// granule meets it, so to read its columns first gains nothing, and it cost 45 ms of
// a statement's 60 where parts are read in order (ClickHouse 26.7, measured).
var unfilteredSettings = func() map[string]string {
	all := maps.Clone(readSettings)
	all["optimize_move_to_prewhere"] = "0"
	return all
}()

// rareSettings are for what is left where the nearest rows had not enough that meet a filter: to read in the page's order is to read
// one part after the other, and where few rows meet it nearly all are read anyway. A user with 100 of 10,000,000 rows took 2.1 s so,
// and takes half of it otherwise (ClickHouse 26.7, two cores, measured).
var rareSettings = func() map[string]string {
	all := maps.Clone(readSettings)
	all["optimize_read_in_order"] = "0"
	return all
}()

// settings are those of a read of rows in the page's order.
func (p *plan) settings() map[string]string {
	if p.where.All() {
		return unfilteredSettings
	}
	return readSettings
}

// columns is the SELECT list of a page: the topic's columns, then where the event
// is stored; or time and id for the order, then what the mask asks for, whose
// parameters join params.
func (p *plan) columns(params map[string]string) string {
	if p.fields == nil {
		return columns(&p.topic)
	}
	exprs, more := p.fields.SQL(column)
	maps.Copy(params, more)
	return "`ts` AS `" + keyTs + "`, `id` AS `" + keyID + "`, " + strings.Join(exprs, ", ")
}

// The names under which a masked row carries its place in the order.
const (
	keyTs = "_ts"
	keyID = "_id"
)

// columns are all of a topic.
func columns(t *schemas.Topic) string {
	all := append(t.Columns(t.Version), schemas.ColMonth, schemas.ColShard, schemas.ColPos)
	for i, name := range all {
		all[i] = column(name)
	}
	return strings.Join(all, ", ")
}

// column selects one column: the shard as its 16 hex digits.
func column(name string) string {
	if name == schemas.ColShard {
		return "lower(leftPad(hex(shard), 16, '0')) AS shard"
	}
	return sql.QuoteName(name)
}

// condition is the part of WHERE that a range, the page's cursor and its filter
// make.
func (p *plan) condition(lo, hi int64) (string, map[string]string) {
	where, params := p.where.SQL()
	if params == nil {
		params = map[string]string{}
	}
	conds := []string{
		fmt.Sprintf("ts >= fromUnixTimestamp64Nano(%d, 'UTC')", lo),
		fmt.Sprintf("ts <= fromUnixTimestamp64Nano(%d, 'UTC')", hi),
	}
	if p.after.set() && !p.after.edge {
		// The ts conditions above prune; the tuple alone would read everything.
		op := "<"
		if p.asc {
			op = ">"
		}
		conds = append(conds, fmt.Sprintf("(ts, %s) %s (fromUnixTimestamp64Nano(%d, 'UTC'), %s)", schemas.IDOrderSQL, op, p.after.ts, p.after.id.OrderSQL()))
	}
	if where != "" {
		conds = append(conds, "("+where+")")
	}
	return strings.Join(conds, " AND "), params
}

func (p *plan) order() string {
	dir := "DESC"
	if p.asc {
		dir = "ASC"
	}
	return fmt.Sprintf("ORDER BY ts %s, %s %s LIMIT %d", dir, schemas.IDOrderSQL, dir, p.limit+1)
}

// collect runs a read whose answer is JSONEachRow and scans its rows.
func (r *Reader) collect(ctx context.Context, s *tables.Select) ([]row, error) {
	s.SQL += " FORMAT JSONEachRow"
	if s.Settings == nil {
		s.Settings = readSettings
	}
	var rows []row
	err := r.lines(ctx, s, func(line []byte) error {
		one, err := parseRow(line)
		if err == nil {
			rows = append(rows, one)
		}
		return err
	})
	return rows, err
}

// keptTimes is how many bytes a read keeps for each of ClickHouse's answer: the row, what it becomes, and the
// answer that is made of it.
const keptTimes = 3

// lines runs a read and calls f for each line of its answer.
func (r *Reader) lines(ctx context.Context, s *tables.Select, f func(line []byte) error) error {
	body, err := r.db.Select(ctx, s)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	return scanLines(budget.Reader(ctx, body, keptTimes), f)
}

// scanLines calls f for each line of an answer.
func scanLines(body io.Reader, f func(line []byte) error) error {
	s := bufio.NewScanner(body)
	s.Buffer(nil, maxLineBytes)
	for s.Scan() {
		if len(s.Bytes()) == 0 {
			continue
		}
		if err := f(s.Bytes()); err != nil {
			return err
		}
	}
	return s.Err()
}

// maxLineBytes bounds one event as JSON, far above its 64 KiB with each byte
// escaped as six characters at the worst.
const maxLineBytes = 4 << 20

// parseRow finds time and id, the first two keys of an event's JSON, and keeps
// the rest as it is; without the two where they are only there for the order.
func parseRow(line []byte) (row, error) {
	masked := bytes.HasPrefix(line, []byte(`{"`+keyTs+`":`))
	ts, rest, ok := leading(line[min(1, len(line)):])
	id, rest, ok2 := leading(rest)
	if !ok || !ok2 {
		return row{}, fmt.Errorf("query: ClickHouse's answer does not begin with time and id: %.200s", line)
	}
	at, err := time.Parse(time.RFC3339Nano, ts)
	if err != nil {
		return row{}, fmt.Errorf("query: ClickHouse's answer has the time %q: %w", ts, err)
	}
	key, err := schemas.ParseID(id)
	if err != nil {
		return row{}, fmt.Errorf("query: ClickHouse's answer: %w", err)
	}
	if masked {
		line = append([]byte{'{'}, rest...)
	} else {
		line = slices.Clone(line)
	}
	return row{position{ts: at.UnixNano(), id: key}, line}, nil
}

// leading is the value of the first key, which is a text without escapes, and
// what follows the comma behind it.
func leading(b []byte) (value string, rest []byte, ok bool) {
	_, b, ok = bytes.Cut(b, []byte(`:"`))
	v, rest, ok2 := bytes.Cut(b, []byte{'"'})
	return string(v), bytes.TrimPrefix(rest, []byte{','}), ok && ok2
}
