package query

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
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

// columns is the SELECT list of a page: the topic's columns, then where the
// event is stored, the shard as its 16 hex digits.
func columns(t *schemas.Topic) string {
	var b strings.Builder
	for _, c := range t.Columns(t.Version) {
		b.WriteString(schemas.QuoteName(c) + ", ")
	}
	b.WriteString("month, lower(leftPad(hex(shard), 16, '0')) AS shard, pos")
	return b.String()
}

// condition is the part of WHERE that the page's range, cursor and filter make.
func (p *plan) condition() (string, map[string]string) {
	where, params := p.where.SQL()
	if params == nil {
		params = map[string]string{}
	}
	conds := []string{
		fmt.Sprintf("ts >= fromUnixTimestamp64Nano(%d, 'UTC')", p.lower()),
		fmt.Sprintf("ts <= fromUnixTimestamp64Nano(%d, 'UTC')", p.upper()),
	}
	if p.after.set() && !p.after.edge {
		// The ts conditions above prune; the tuple alone would read everything.
		op := "<"
		if p.asc {
			op = ">"
		}
		conds = append(conds, fmt.Sprintf("(ts, id) %s (fromUnixTimestamp64Nano(%d, 'UTC'), toUUID('%s'))", op, p.after.ts, p.after.id))
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
	return fmt.Sprintf("ORDER BY ts %s, id %s LIMIT %d", dir, dir, p.limit+1)
}

// collect runs a read whose answer is JSONEachRow and scans its rows.
func (r *Reader) collect(ctx context.Context, s *tables.Select) ([]row, error) {
	s.SQL += " FORMAT JSONEachRow"
	s.Settings = readSettings
	body, err := r.db.Select(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	var rows []row
	err = scanLines(body, func(line []byte) error {
		one, err := parseRow(line)
		if err == nil {
			rows = append(rows, one)
		}
		return err
	})
	return rows, err
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

// parseRow finds time and id in an event's JSON and keeps the rest as it is.
func parseRow(line []byte) (row, error) {
	var key struct{ Ts, ID string }
	if err := json.Unmarshal(line, &key); err != nil {
		return row{}, fmt.Errorf("query: ClickHouse's answer is not JSON: %w: %.200s", err, line)
	}
	ts, err := time.Parse(time.RFC3339Nano, key.Ts)
	if err != nil {
		return row{}, fmt.Errorf("query: ClickHouse's answer has the time %q: %w", key.Ts, err)
	}
	id, err := schemas.ParseID(key.ID)
	if err != nil {
		return row{}, fmt.Errorf("query: ClickHouse's answer: %w", err)
	}
	return row{position{ts: ts.UnixNano(), id: id}, slices.Clone(line)}, nil
}
