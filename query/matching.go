package query

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
	"github.com/almanac-events/almanac/tables"
)

// Headers calls f with the headers of a stream's messages under a subject filter,
// from a sequence on to the present end, without their payloads. Damaged messages
// are left out: verify names them.
func (r *Reader) Headers(ctx context.Context, stream, filter string, from uint64, f func(*streams.Message) error) error {
	_, err := streams.Headers(ctx, r.js, stream, filter, from, f)
	return err
}

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
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, fmt.Errorf("query: ids of fresh events: %w", err)
	}
	return strings.Fields(string(text)), nil
}
