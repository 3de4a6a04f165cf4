package tables

import (
	"context"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// FreshSource reads a Select's fresh blocks with the columns a stored row has:
// fields that came after the frames' schema version as the attributes have them, the given
// shard and pos (0 while there are none), and more.
func FreshSource(t *schemas.Topic, schema int, shard schemas.Shard, pos uint64, more ...string) string {
	more = append(more, fmt.Sprintf("toUInt64(%d) AS shard", uint64(shard)), fmt.Sprintf("toUInt64(%d) AS pos", pos))
	return withDefaults(t, schema, more...) + " FROM " + FreshTable
}

// withDefaults selects a frame's columns, the month, the fields its schema version
// did not know yet, and more.
func withDefaults(t *schemas.Topic, schema int, more ...string) string {
	cols := append([]string{"*"}, more...)
	for i := len(t.FieldsAt(schema)); i < len(t.Fields); i++ {
		cols = append(cols, sql.OlderSQL(t, &t.Fields[i])+" AS "+sql.QuoteName(t.Fields[i].Name))
	}
	return "SELECT " + strings.Join(append(cols, "toUInt32(toYYYYMM(ts)) AS month"), ", ")
}

// CountFresh counts the events of some blocks (frame.Reader.Raw), of one schema
// version, that fulfil a condition.
func (db *DB) CountFresh(ctx context.Context, t *schemas.Topic, schema int, blocks [][]byte, c Condition) (n uint64, err error) {
	err = db.Lines(ctx, &Select{
		SQL:    fmt.Sprintf("SELECT count() FROM (%s) WHERE %s FORMAT TSV", FreshSource(t, schema, 0, 0), c.SQL),
		Params: c.Params, Settings: Settings(), Fresh: blocks, FreshStructure: t.FrameStructure(schema),
	}, func(line string) error {
		_, err := fmt.Sscan(line, &n)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("counting fresh events of topic %q: %w", t.Name, err)
	}
	return n, nil
}

// CountFrame counts the events of one frame that fulfil a condition.
func (db *DB) CountFrame(ctx context.Context, t *schemas.Topic, p schemas.Placed, payload []byte, c Condition) (uint64, error) {
	var r frame.Reader
	if err := r.Open(payload, t, p.Schema); err != nil {
		return 0, fmt.Errorf("position %d of topic %q: %w", p.Pos, t.Name, err)
	}
	return db.CountFresh(ctx, t, p.Schema, [][]byte{r.Raw()}, c)
}
