package once

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/tables"
)

// readSettings bound a statement: memory, and time, which a client that vanished must not cost.
var readSettings = map[string]string{
	"max_execution_time":                    "300",
	"max_bytes_before_external_group_by":    "1000000000",
	"max_query_size":                        "16777216",
	"max_ast_elements":                      "2000000",
	"max_expanded_ast_elements":             "2000000",
	"use_query_condition_cache":             "0", // as in internal/rollups/derived/fill.go
	"http_write_exception_in_output_format": "0",
	// A statement that reads a table twice, as its assertions do, sees one state of it, whatever a server's profile says.
	"enable_shared_storage_snapshot_in_query": "1",
	// A row with escapes takes longer to read.
	"output_format_json_escape_forward_slashes": "0",
	// A server's profile may say otherwise, also to toJSONString.
	"output_format_json_quote_64bit_integers": "0",
}

// keptTimes is how many bytes a read keeps for each of ClickHouse's answer: the row, what it becomes, and the
// answer that is made of it.
const keptTimes = 3

// Ask runs a statement, whose answer the caller closes. settings are added to the usual bounds.
func Ask(ctx context.Context, db *tables.DB, sql string, params, settings map[string]string) (io.ReadCloser, error) {
	all := maps.Clone(readSettings)
	maps.Copy(all, settings)
	body, err := db.Select(ctx, &tables.Select{SQL: sql, Params: params, Settings: all})
	if err != nil && strings.Contains(err.Error(), TextMoved) {
		return nil, ErrMoved
	}
	return body, err
}

// Lines runs a statement in the format JSONCompactEachRow and calls f with each row of its
// answer. settings are as in Ask.
func Lines[T any](ctx context.Context, db *tables.DB, sql string, params, settings map[string]string, f func(T) error) error {
	body, err := Ask(ctx, db, sql, params, settings)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	return tables.EachLine(budget.Reader(ctx, body, keptTimes), func(line []byte) error {
		var row T
		if texts, are := any(&row).(*[]string); !are || !split(line, texts) {
			if err := json.Unmarshal(line, &row); err != nil {
				return fmt.Errorf("ClickHouse's answer is %.200q: %w", line, err)
			}
		}
		return f(row)
	})
}

// split reads a row of texts without escapes, which most rows are: a fifth of what JSON's decoder costs. false:
// it is not such a row, and texts stay as they are.
func split(line []byte, texts *[]string) bool {
	const begin, between, end = `["`, `", "`, `"]` // as ClickHouse writes them
	row := strings.TrimSuffix(string(line), "\n")
	if strings.IndexByte(row, '\\') >= 0 || !utf8.ValidString(row) || len(row) < len(begin)+len(end) || !strings.HasPrefix(row, begin) || !strings.HasSuffix(row, end) {
		return false
	}
	row = row[len(begin) : len(row)-len(end)]
	out := strings.Split(row, between)
	for _, text := range out {
		if strings.IndexByte(text, '"') >= 0 { // numbers, or no spaces between texts
			return false
		}
	}
	*texts = out
	return true
}
