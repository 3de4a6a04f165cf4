package timers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Archive reads the history of timers in ClickHouse.
type Archive struct {
	DB *tables.DB
	// User and Password, when set, are used instead of the connection's own.
	User, Password string
}

// maxHistory bounds the transitions of one timer that are read.
const maxHistory = 10_000

// Row is a stored transition of a timer; Ts and Due are unix ns.
type Row struct {
	Ts       int64   `json:"ts"`
	Due      int64   `json:"due"`
	Life     string  `json:"life"`
	Slot     int     `json:"slot"`
	Revision int64   `json:"revision"`
	Attempt  int64   `json:"attempt"`
	State    string  `json:"state"`
	Status   int     `json:"status"`
	Error    string  `json:"error"`
	Detail   string  `json:"detail"`
	TookMs   float64 `json:"took_ms"`
	LateMs   float64 `json:"late_ms"`
	User     string  `json:"user_id"`
	Spec     string  `json:"spec"`
	Seq      uint64  `json:"seq"`
}

// TimerHistory returns the stored transitions of a timer, oldest first, but those that erasures mean.
func (a Archive) TimerHistory(ctx context.Context, key schemas.TimerKey, except ledger.Cover) ([]Row, error) {
	if err := schemas.ValidateTopicName(key.Topic); err != nil {
		return nil, err
	}
	keep, params := except.Keep()
	params = withParams(params, "g", key.Group, "id", key.ID)
	answer, err := a.DB.Select(ctx, &tables.Select{
		SQL: fmt.Sprintf("SELECT toUnixTimestamp64Nano(t.ts) AS ts, toUnixTimestamp64Nano(t.due) AS due, life, slot, revision, attempt, state, status, error, detail, took_ms, late_ms, user_id, spec, seq"+
			" FROM (SELECT * FROM %s WHERE %s AND `group` = {g:String} AND timer_id = {id:String} AND %s) AS t ORDER BY t.seq LIMIT %d FORMAT JSONEachRow", sql.QuotedTable(a.DB.Database, key.Topic), sql.InLane(key.Lane), keep, maxHistory),
		Params:   params,
		Settings: map[string]string{"output_format_json_quote_64bit_integers": "0"},
		User:     a.User, Password: a.Password,
	})
	if errors.Is(err, tables.ErrNoTable) { // nothing was stored yet
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("timers: the history of %q in ClickHouse: %w", key.ID, err)
	}
	defer func() { _ = answer.Close() }()
	var out []Row
	d := json.NewDecoder(bufio.NewReader(budget.Reader(ctx, answer, 3)))
	for d.More() {
		var r Row
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf("timers: the history of %q in ClickHouse: %w", key.ID, err)
		}
		out = append(out, r)
	}
	return out, nil
}
