package tables

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/schemas/timer"
)

// NewestTimer is the newest stored transition of a timer.
type NewestTimer struct {
	Group, ID, Life   string
	Slot              int
	Op                timer.Op
	Revision, Attempt int64
	Due, Changed      int64 // unix ns
	Seq               uint64
	// Begun: the life's creation is stored, or that it was restored. Spec: what it calls is stored.
	Begun, Spec bool
}

// Key is where the timer lives in TIMERS.
func (n *NewestTimer) Key(t *schemas.Topic) schemas.TimerKey {
	return schemas.TimerKey{Topic: t.Name, Lane: n.Slot % t.Lanes, Group: n.Group, Slot: n.Slot, ID: n.ID}
}

// NewestTimers calls f with the newest stored transition of each timer of a topic's lane, or of those with the
// listed ids.
func (db *DB) NewestTimers(ctx context.Context, topic string, lane int, ids []string, f func(NewestTimer) error) error {
	where, params := sql.InLane(lane), map[string]string{}
	if ids != nil {
		where, params["ids"] = where+" AND "+kinds.ColTimerID+" IN {ids:Array(String)}", arrayOf(ids)
	}
	ops := fmt.Sprintf("'%s', '%s'", timer.Created, timer.Restored)
	q := fmt.Sprintf("SELECT g, i, n.1, n.2, n.3, n.4, n.5, n.6, n.7, n.8, n.9, n.10 FROM (SELECT g, i, argMax((life, slot, op, revision, attempt, due, ts, seq, begun, spec), seq) AS n FROM ("+
		"SELECT t.`%[1]s` AS g, t.%[2]s AS i, t.%[3]s AS life, argMax(t.%[4]s, t.%[5]s) AS slot, argMax(t.%[6]s, t.%[5]s) AS op, argMax(t.%[7]s, t.%[5]s) AS revision, "+
		"argMax(t.%[8]s, t.%[5]s) AS attempt, argMax(toUnixTimestamp64Nano(t.%[9]s), t.%[5]s) AS due, argMax(toUnixTimestamp64Nano(t.%[10]s), t.%[5]s) AS ts, max(t.%[5]s) AS seq, "+
		"max(t.%[6]s IN (%[11]s)) AS begun, max(t.%[12]s != '') AS spec FROM %[13]s AS t WHERE %[14]s GROUP BY g, i, life) GROUP BY g, i) FORMAT TSV",
		kinds.ColGroup, kinds.ColTimerID, kinds.ColLife, kinds.ColSlot, kinds.ColSeq, kinds.ColState, kinds.ColRevision, kinds.ColAttempt, kinds.ColDue, schemas.ColTs,
		ops, kinds.ColSpec, sql.QuotedTable(db.Database, topic), where)
	err := db.lines(ctx, &Select{SQL: q, Params: params, Settings: settings()}, func(line string) error {
		var n NewestTimer
		var begun, spec int
		if _, err := fmt.Fscan(strings.NewReader(line), &n.Group, &n.ID, &n.Life, &n.Slot, &n.Op, &n.Revision, &n.Attempt, &n.Due, &n.Changed, &n.Seq, &begun, &spec); err != nil {
			return fmt.Errorf("ClickHouse's answer is %q: %w", line, err)
		}
		n.Begun, n.Spec = begun == 1, spec == 1
		return f(n)
	})
	if err != nil {
		return fmt.Errorf("timers of topic %q: %w", topic, err)
	}
	return nil
}

// TimerLife is what the stored transitions of a timer's life say beside its newest one.
type TimerLife struct {
	Life     string `json:"life"`
	Revision int64  `json:"revision"` // the last
	Spec     string `json:"spec"`     // the last that is stored
	User     string `json:"user_id"`
	// CreatedAt and First, when the revision's first attempt began, are unix ns; 0: it is not stored.
	CreatedAt int64 `json:"created_at"`
	First     int64 `json:"first"`
}

// TimerLives reads lives of a topic's timers, by life.
func (db *DB) TimerLives(ctx context.Context, topic string, lives []string) (map[string]TimerLife, error) {
	q := fmt.Sprintf("SELECT t.%[1]s AS life, t.%[2]s AS revision, argMaxIf(t.%[3]s, t.%[4]s, t.%[3]s != '') AS spec, argMax(t.%[5]s, t.%[4]s) AS user_id, "+
		"toUnixTimestamp64Nano(minIf(t.%[6]s, t.%[7]s = '%[8]s')) AS created_at, toUnixTimestamp64Nano(minIf(t.%[6]s, t.%[7]s = '%[9]s')) AS first "+
		"FROM %[10]s AS t WHERE t.%[1]s IN {lives:Array(String)} GROUP BY life, revision ORDER BY life, revision FORMAT JSONEachRow",
		kinds.ColLife, kinds.ColRevision, kinds.ColSpec, kinds.ColSeq, schemas.ColUserID, schemas.ColTs, kinds.ColState, timer.Created, timer.Firing,
		sql.QuotedTable(db.Database, topic))
	answer, err := db.Select(ctx, &Select{SQL: q, Params: map[string]string{"lives": arrayOf(lives)}, Settings: settings(map[string]string{"output_format_json_quote_64bit_integers": "0"})})
	if err != nil {
		return nil, fmt.Errorf("timers of topic %q: %w", topic, err)
	}
	defer func() { _ = answer.Close() }()
	out := make(map[string]TimerLife, len(lives))
	for d := json.NewDecoder(bufio.NewReader(answer)); d.More(); {
		var l TimerLife
		if err := d.Decode(&l); err != nil {
			return nil, fmt.Errorf("timers of topic %q: %w", topic, err)
		}
		if before, ok := out[l.Life]; ok { // an earlier revision
			l.CreatedAt = max(l.CreatedAt, before.CreatedAt)
			if l.Spec == "" {
				l.Spec = before.Spec
			}
		}
		out[l.Life] = l
	}
	return out, nil
}
