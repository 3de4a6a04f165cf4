package records

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// A life is looked for in some lanes alone: of one that other lanes have rows of too, which no router put there, none of those counts.
func TestLivesOfALane(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopicOf(kinds.Timer, "timers")
	topic.Lanes = 16
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	db, err := tables.Open(srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	table := sql.QuotedTable(db.Database, topic.Name)
	const life = "00000000-0000-7000-8000-0000000000aa"
	var values []string
	for lane := range topic.Lanes {
		values = append(values, fmt.Sprintf("('2026-11-20 12:00:00', generateUUIDv7(%d), 'g', 't', '%s', %d, %d, 'created', 'spec', 'u-%d', 202611, %d, 1)", lane, life, lane+1, 100+lane, lane, uint64(lane)<<schemas.LaneShift|1))
	}
	if err := db.Conn().Exec(t.Context(), fmt.Sprintf("INSERT INTO %s (ts, id, `group`, timer_id, life, revision, seq, state, spec, user_id, month, shard, pos) VALUES %s", table, strings.Join(values, ", "))); err != nil {
		t.Fatal(err)
	}
	for _, lanes := range [][]int{{3}, {3, 12, 3}, {}} {
		var revision int64
		for _, lane := range lanes {
			revision = max(revision, int64(lane)+1)
		}
		lives, err := timerLives(t.Context(), db, topic.Name, lanes, []string{life})
		if l := lives[life]; err != nil || l.Revision != revision || revision > 0 && l.User != fmt.Sprint("u-", revision-1) {
			t.Errorf("the life in lanes %d: %+v, %v", lanes, l, err)
		}
	}
}
