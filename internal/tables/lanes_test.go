package tables

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// What is looked for in some lanes is looked for in the parts of these alone: of records that other lanes have rows of too, which no
// router put there, none of those counts.
func TestRecordsOfALane(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopicOf(kinds.Timer, "timers")
	topic.Lanes = 16
	db, _, _ := openWith(t, topic)
	table := sql.QuotedTable(db.Database, topic.Name)
	const life = "00000000-0000-7000-8000-0000000000aa"
	var values []string
	for lane := range topic.Lanes {
		values = append(values, fmt.Sprintf("('2026-11-20 12:00:00', generateUUIDv7(%d), 'g', 't', '%s', %d, %d, 'created', 'spec', 'u-%d', 202611, %d, 1)", lane, life, lane+1, 100+lane, lane, uint64(lane)<<schemas.LaneShift|1))
	}
	if err := db.Conn().Exec(t.Context(), fmt.Sprintf("INSERT INTO %s (ts, id, `group`, timer_id, life, revision, seq, state, spec, user_id, month, shard, pos) VALUES %s", table, strings.Join(values, ", "))); err != nil {
		t.Fatal(err)
	}
	there, err := db.RecordsThere(t.Context(), topic.Name, 3, []uint64{102, 103, 104})
	if err != nil || len(there) != 1 || !there[103] {
		t.Errorf("records of lane 3: %v, %v", there, err)
	}
	var database, name string
	var parts, rows, marks uint64
	if err := db.Conn().QueryRow(t.Context(), fmt.Sprintf("EXPLAIN ESTIMATE SELECT life FROM %s WHERE %s", table, sql.InLanes(3, 12))).Scan(&database, &name, &parts, &rows, &marks); err != nil || parts != 2 || rows != 2 {
		t.Errorf("of two lanes %d parts with %d rows would be read, %v", parts, rows, err)
	}
}
