package tables

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/schemas/timer"
)

// The view of timers has a state by the word that the API has it by, after each transition.
func TestStatesOfTimersLatest(t *testing.T) {
	t.Parallel()
	topic, err := schemas.NewTopicOf(kinds.Timer, "timers").Declared()
	if err != nil {
		t.Fatal(err)
	}
	db, _, _ := openWith(t, topic)
	if err := db.EnsureViews(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	ops := []timer.Op{timer.Created, timer.Updated, timer.Firing, timer.Done, timer.Failed, timer.Retry, timer.Rescheduled, timer.Cancelled, timer.Restored}
	var values []string
	for i, op := range ops {
		for seq, state := range []timer.Op{timer.Created, timer.Firing, op} { // the last one counts
			values = append(values, fmt.Sprintf("('2026-11-20 12:00:00', generateUUIDv7(), 'g', '%s', %d, '%s', 202611, 1, %d)", op, 3*i+seq, state, 3*i+seq+1))
		}
	}
	table := sql.QuotedTable(db.Database, topic.Name)
	if err := db.Conn().Exec(t.Context(), fmt.Sprintf("INSERT INTO %s (ts, id, `group`, timer_id, seq, state, month, shard, pos) VALUES %s", table, strings.Join(values, ", "))); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Conn().Query(t.Context(), "SELECT timer_id, state FROM "+sql.QuotedTable(db.Database, topic.Name+kinds.ViewLatest))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for rows.Next() {
		var id, state string
		if err := rows.Scan(&id, &state); err != nil {
			t.Fatal(err)
		}
		if want := timer.Op(id).State(); want == "" || state != string(want) {
			t.Errorf("after %s it is %q, want %q", id, state, want)
		}
		n++
	}
	if err := rows.Err(); err != nil || n != len(ops) {
		t.Errorf("%d timers of %d, %v", n, len(ops), err)
	}
}
