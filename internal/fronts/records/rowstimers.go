package records

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/schemas/timer"
)

// transition is the newest stored transition of a timer.
type transition struct {
	Group, ID, Life   string
	Slot              int
	Op                timer.Op
	Revision, Attempt int64
	Due, Changed      int64 // unix ns
	Seq               uint64
	// Begun: the life's creation is stored, or that it was restored. Spec: what it calls is stored.
	Begun, Spec bool
}

// timerKey is where a timer lives in TIMERS.
func timerKey(t *schemas.Topic, group string, slot int, id string) schemas.TimerKey {
	return schemas.TimerKey{Topic: t.Name, First: t.First, Lane: slot % t.Lanes, Group: group, Slot: slot, ID: id}
}

// Key is where the timer lives in TIMERS.
func (n *transition) Key(t *schemas.Topic) schemas.TimerKey {
	return timerKey(t, n.Group, n.Slot, n.ID)
}

func timerRow(r *Row) *transition {
	if r == nil {
		return nil
	}
	return r.of.(*transition)
}

// newestTimers also gives timers of other groups that have the same ids.
func newestTimers(ctx context.Context, db *tables.DB, t *schemas.Topic, lane int, subjects []string, f func(Row) error) error {
	c := tables.Condition{SQL: sql.InLane(lane)}
	if subjects != nil {
		c = tables.Among(c, kinds.ColTimerID, timerIDs(subjects))
	}
	c.SQL = sql.NewestTimers{Table: sql.QuotedTable(db.Database, t.Name), Where: c.SQL, Created: string(timer.Created), Restored: string(timer.Restored)}.SQL()
	return unlessNoTable(db.Of(ctx, "timer", t.Name, c, func(line string) error {
		var n transition
		var begun, spec int
		err := tables.Columns(line, &n.Group, &n.ID, &n.Life, &n.Slot, &n.Op, &n.Revision, &n.Attempt, &n.Due, &n.Changed, &n.Seq, &begun, &spec)
		if err != nil {
			return err
		}
		n.Begun, n.Spec = begun == 1, spec == 1
		return f(Row{Subject: n.Key(t).Subject(), Seq: n.Seq, of: &n})
	}))
}

// meantLife is a timer with records that fulfil a condition.
type meantLife struct {
	Group, ID string
	Slot      int
	// Life is that of the last record that does.
	Life string
}

// meantTimers lists in the order of group and id.
func meantTimers(ctx context.Context, db *tables.DB, t *schemas.Topic, lane int, subjects []string, c tables.Condition, after *Meant, n int) (out []Meant, err error) {
	if subjects != nil {
		c = tables.Among(c, kinds.ColTimerID, timerIDs(subjects))
	}
	var from meantLife
	if after != nil {
		from = *after.of.(*meantLife)
	}
	q := sql.MeantTimers{Table: sql.QuotedTable(db.Database, t.Name), Where: sql.InLane(lane), Meant: c.SQL, Limit: n}.SQL()
	err = db.Of(ctx, "timer", t.Name, c.Under(q, map[string]string{"after_group": from.Group, "after_id": from.ID}), func(line string) error {
		var m meantLife
		if err := tables.Columns(line, &m.Group, &m.ID, &m.Slot, &m.Life); err != nil {
			return err
		}
		out = append(out, Meant{Subject: timerKey(t, m.Group, m.Slot, m.ID).Subject(), of: &m})
		return nil
	})
	return out, unlessNoTable(err)
}

// timerLife is what the stored transitions of a timer's life say beside its newest one.
type timerLife struct {
	Life     string `json:"life"`
	Revision int64  `json:"revision"` // the last
	Spec     string `json:"spec"`     // the last that is stored
	User     string `json:"user_id"`
	// CreatedAt and First, when the revision's first attempt began, are unix ns; 0: it is not stored.
	CreatedAt int64 `json:"created_at"`
	First     int64 `json:"first"`
}

// timerLives reads lives of the timers of some lanes of a topic, by life.
func timerLives(ctx context.Context, db *tables.DB, topic string, lanes []int, lives []string) (map[string]timerLife, error) {
	q := sql.TimerLives{Table: sql.QuotedTable(db.Database, topic), Where: sql.InLanes(lanes...), Created: string(timer.Created), Firing: string(timer.Firing)}.SQL()
	answer, err := db.Select(ctx, &tables.Select{SQL: q, Params: map[string]string{"lives": tables.ArrayOf(lives)}, Settings: tables.Settings(map[string]string{"output_format_json_quote_64bit_integers": "0"})})
	if err != nil {
		return nil, fmt.Errorf("timers of topic %q: %w", topic, err)
	}
	defer func() { _ = answer.Close() }()
	out := make(map[string]timerLife, len(lives))
	for d := json.NewDecoder(bufio.NewReader(answer)); d.More(); {
		var l timerLife
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
