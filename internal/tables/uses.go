package tables

import (
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Use is what a topic's privacy rules and promoted fields met, in the rows looked at.
type Use struct {
	Rows uint64
	// Matched has for each of the topic's PII how many rows have a name under the
	// rule, -1 where it cannot be told; Near names that end alike and are not.
	Matched []int64
	Near    [][]string
	// Misfits has for each of the topic's Fields how many rows keep it as an
	// attribute.
	Misfits []uint64
}

// Bounds of Uses: it is for a look, and a topic may have any size.
const (
	usesRows    = 20_000_000
	usesSeconds = 3
)

// Uses looks at rows of a topic's table, up to usesRows of them.
func (db *DB) Uses(ctx context.Context, t *schemas.Topic) (Use, error) {
	ask := sql.Uses(t)
	u := Use{Matched: make([]int64, len(ask.Rules)), Near: make([][]string, len(ask.Rules)), Misfits: make([]uint64, len(ask.Misfits))}
	columns, into := []string{"count()"}, []any{&u.Rows}
	for i, count := range ask.Rules {
		if count == "" {
			count = "-1"
		}
		columns = append(columns, "toInt64("+count+")", "CAST("+ask.Near[i]+", 'Array(String)')")
		into = append(into, &u.Matched[i], &u.Near[i])
	}
	for i, count := range ask.Misfits {
		columns, into = append(columns, count), append(into, &u.Misfits[i])
	}
	q := fmt.Sprintf("SELECT %s FROM %s SETTINGS max_rows_to_read = %d, read_overflow_mode = 'break', max_execution_time = %d, timeout_overflow_mode = 'break'",
		strings.Join(columns, ", "), sql.QuotedTable(db.Database, t.Name), usesRows, usesSeconds)
	err := Refusal(db.conn.QueryRow(ctx, q).Scan(into...))
	if errors.Is(err, ErrNoTable) || errors.Is(err, stdsql.ErrNoRows) { // an aggregate that ran out of its time has no row
		return Use{}, nil
	}
	if err != nil {
		return u, fmt.Errorf("looking at what the rules and fields of topic %s met: %w", t.Name, err)
	}
	return u, nil
}
