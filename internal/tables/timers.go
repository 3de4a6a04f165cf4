package tables

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// MeantTimer is a timer with records that fulfil a condition.
type MeantTimer struct {
	Group, ID string
	Slot      int
	// Life is that of the last record that does.
	Life string
}

// Key is where the timer lives in TIMERS.
func (m *MeantTimer) Key(t *schemas.Topic) schemas.TimerKey {
	return schemas.TimerKey{Topic: t.Name, Lane: m.Slot % t.Lanes, Group: m.Group, Slot: m.Slot, ID: m.ID}
}

// AmongTimers is a condition that only records of timers with some ids fulfil, of any group.
func AmongTimers(c Condition, ids []string) Condition {
	params := map[string]string{"among": arrayOf(ids)}
	maps.Copy(params, c.Params)
	return Condition{SQL: "(" + c.SQL + ") AND " + kinds.ColTimerID + " IN {among:Array(String)}", Params: params}
}

// MeantTimers lists up to n timers of a topic's lane with records that fulfil a condition, in the order of group and
// id, after one; a zero MeantTimer is the beginning.
func (db *DB) MeantTimers(ctx context.Context, topic string, lane int, c Condition, after MeantTimer, n int) (found []MeantTimer, err error) {
	params := map[string]string{"after_group": after.Group, "after_id": after.ID}
	for k, v := range c.Params {
		params[k] = v
	}
	q := sql.MeantTimers{Table: sql.QuotedTable(db.Database, topic), Where: sql.InLane(lane), Meant: c.SQL, Limit: n}.SQL()
	err = db.Lines(ctx, &Select{SQL: q, Params: params, Settings: Settings()}, func(line string) error {
		t := MeantTimer{}
		if _, err := fmt.Fscan(strings.NewReader(line), &t.Group, &t.ID, &t.Slot, &t.Life); err != nil {
			return fmt.Errorf("ClickHouse's answer is %q: %w", line, err)
		}
		found = append(found, t)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("timers of topic %q: %w", topic, err)
	}
	return found, nil
}
