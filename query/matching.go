package query

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// MatchingIDs are the ids of the events in some frames that fulfil a condition.
// The blocks are decompressed (frame.Reader.Raw) and of one schema version.
func (r *Reader) MatchingIDs(ctx context.Context, t *schemas.Topic, schema int, blocks [][]byte, cond string, params map[string]string) ([]string, error) {
	body, err := r.db.Select(ctx, &tables.Select{
		SQL:    fmt.Sprintf("SELECT id FROM (%s) WHERE %s FORMAT TSV", tables.FreshSource(t, schema, 0, 0), cond),
		Params: params, Settings: map[string]string{"log_queries": "0"}, Fresh: blocks, FreshStructure: t.FrameStructure(schema),
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(budget.Reader(ctx, body, 2))
	if err != nil {
		return nil, fmt.Errorf("query: ids of fresh events: %w", err)
	}
	return strings.Fields(string(text)), nil
}
