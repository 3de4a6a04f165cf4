package timers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// maxLives bounds the lives of one statement, whose parameters go into its URL.
const maxLives = 1000

// MeantLives says of which lives of a topic's timers something is stored that erasures mean.
func (a Archive) MeantLives(ctx context.Context, topic string, lives []string, by ledger.Cover) (map[string]bool, error) {
	if err := schemas.ValidateTopicName(topic); err != nil {
		return nil, err
	}
	keep, params := by.Keep()
	out := map[string]bool{}
	for some := range slices.Chunk(lives, maxLives) {
		answer, err := a.DB.Select(ctx, &tables.Select{
			SQL:    fmt.Sprintf("SELECT DISTINCT life FROM %s WHERE life IN {lives:Array(String)} AND NOT (%s) FORMAT TSV", schemas.QuotedTable(a.DB.Database, topic), keep),
			Params: withParams(params, "lives", "['"+strings.Join(some, "','")+"']"),
			User:   a.User, Password: a.Password,
		})
		if errors.Is(err, tables.ErrNoTable) { // nothing was stored yet
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("timers: what is erased, in ClickHouse: %w", err)
		}
		lines := bufio.NewScanner(answer)
		for lines.Scan() {
			out[lines.Text()] = true
		}
		if err := errors.Join(lines.Err(), answer.Close()); err != nil {
			return nil, fmt.Errorf("timers: what is erased, in ClickHouse: %w", err)
		}
	}
	return out, nil
}

// withParams adds names and values to parameters, which may be nil and stay as they are.
func withParams(params map[string]string, pairs ...string) map[string]string {
	out := map[string]string{}
	for k, v := range params {
		out[k] = v
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}
