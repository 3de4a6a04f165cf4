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
	q := sql.NewestTimers{Table: sql.QuotedTable(db.Database, topic), Where: where, Created: string(timer.Created), Restored: string(timer.Restored)}.SQL()
	err := db.Lines(ctx, &Select{SQL: q, Params: params, Settings: Settings()}, func(line string) error {
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

// TimerLives reads lives of the timers of some lanes of a topic, by life.
func (db *DB) TimerLives(ctx context.Context, topic string, lanes []int, lives []string) (map[string]TimerLife, error) {
	q := sql.TimerLives{Table: sql.QuotedTable(db.Database, topic), Where: sql.InLanes(lanes...), Created: string(timer.Created), Firing: string(timer.Firing)}.SQL()
	answer, err := db.Select(ctx, &Select{SQL: q, Params: map[string]string{"lives": arrayOf(lives)}, Settings: Settings(map[string]string{"output_format_json_quote_64bit_integers": "0"})})
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
