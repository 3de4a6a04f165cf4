package timers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// Archive implements timers.Archive.
type Archive struct {
	DB *tables.DB
	// User and Password, when set, are used instead of the connection's own.
	User, Password string
}

// maxHistory bounds the transitions of one timer that are read.
const maxHistory = 10_000

// row is a line of the answer; Ts and Due are unix ns.
type row struct {
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
func (a Archive) TimerHistory(ctx context.Context, key schemas.TimerKey, except ledger.Cover) ([]timers.Timer, error) {
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
	var out []timers.Timer
	d := json.NewDecoder(bufio.NewReader(budget.Reader(ctx, answer, 3)))
	for d.More() {
		var r row
		if err := d.Decode(&r); err != nil {
			return nil, fmt.Errorf("timers: the history of %q in ClickHouse: %w", key.ID, err)
		}
		out = append(out, r.timer(key.Topic, key.Group, key.ID))
	}
	return out, nil
}

func (r *row) timer(topic, group, id string) timers.Timer {
	t := timers.Timer{
		Topic: topic, Group: group, ID: id, Op: timer.Op(r.State), State: timer.Op(r.State).State(), Due: time.Unix(0, r.Due).UTC(),
		Revision: r.Revision, Attempt: r.Attempt, Life: r.Life, Slot: r.Slot, User: r.User, UpdatedAt: time.Unix(0, r.Ts).UTC(),
		Status: r.Status, Error: r.Error, Detail: r.Detail, TookMs: r.TookMs, LateMs: r.LateMs, Seq: r.Seq,
	}
	t.Executed()
	if r.Spec != "" {
		var s timer.Spec
		if json.Unmarshal([]byte(r.Spec), &s) == nil {
			t.Describe(&s)
		}
	}
	return t
}
