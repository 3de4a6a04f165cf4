package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// Much is damaged at once, and every repair is killed after its first step, while
// a router and a sink run. What comes of it in the end is right, row by row.
func TestRepairKilled(t *testing.T) {
	t.Parallel()
	const n = 45
	e := startDozens(t)
	stopRouter, stopSink := e.router(), e.sink()
	p := e.producer("app")
	closed := e.dozens(p, n)
	want := e.rowsHash("app")
	stopRouter()
	stopSink()
	where := func(s registry.Shard) string {
		return fmt.Sprintf("month = %d AND shard = %d", uint32(s.Month), uint64(s.ID))
	}
	e.exec("ALTER TABLE %s DROP PARTITION ID '%s'", e.table("app"), schemas.PartitionID(closed[0].Month, closed[0].ID))
	e.exec("INSERT INTO %s SELECT * FROM %[1]s WHERE %s ORDER BY id LIMIT 5"+noMerge, e.table("app"), where(closed[1]))
	e.exec("DELETE FROM %s WHERE id = (SELECT max(id) FROM %[1]s WHERE %s) SETTINGS lightweight_delete_mode = 'lightweight_update_force'", e.table("app"), where(closed[1]))
	e.edit(closed[1], func(s *registry.Shard) { s.Rows = 999 })
	frames := e.messages(schemas.StreamShards, schemas.ShardSubject("app", closed[2].Month, closed[2].ID))
	for _, m := range frames[3:5] {
		if err := e.shardsStream().DeleteMsg(t.Context(), m.Sequence); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{schemas.ShardKey("app", closed[2].Month, closed[2].ID), schemas.HeadKey("app", closed[2].Month), schemas.TopicKey("app")} {
		e.purgeKey(key)
	}
	if err := e.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(schemas.RoutedSubject("app", "0"))); err != nil {
		t.Fatal(err)
	}
	e.router()
	e.sink()
	e.killed()
	if got := e.rowsHash("app"); got != want {
		t.Errorf("the table has %s, want %s", got, want)
	}
	e.say(p, 5)
	e.stored("app", n+5, 30*time.Second)
	e.repaired(n + 5)
}

// Rows that a closed shard's end lost, or that stood where SHARDS was purged since,
// were stored once: they are missing, not pending. And a row that is there twice in
// place of another of the same insert is seen on a shard that is written to.
func TestVerifyLostEnds(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	stop := e.sink()
	p := e.producer("app")
	e.say(p, 3)
	e.stored("app", 3, 30*time.Second)
	stop()
	e.say(p, 10) // of one insert
	e.routed("app", 13)
	stop = e.sink()
	e.stored("app", 13, 30*time.Second)
	stop()
	s := e.shards("app")[0]
	want := e.rowsHash("app")
	const erase = " SETTINGS lightweight_delete_mode = 'lightweight_update_force'"
	e.exec("INSERT INTO %s SELECT * FROM %[1]s WHERE pos > 3 ORDER BY id LIMIT 1"+noMerge, e.table("app"))
	e.exec("DELETE FROM %s WHERE pos = 9"+erase, e.table("app"))
	rep, err := e.proof("")
	if err != nil || rep.OK() || rep.Missing != 1 || rep.Doubled != 1 {
		t.Errorf("verify does not see that one row stands in for another: %d missing, %d doubled, %v, %v", rep.Missing, rep.Doubled, rep.Problems, err)
	}
	e.repaired(13)
	if got := e.rowsHash("app"); got != want {
		t.Errorf("the table has %s, want %s", got, want)
	}
	// The janitor purged up to 6, so up to there all was stored.
	frames := e.messages(schemas.StreamShards, subjectOf(s))
	if err := e.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(subjectOf(s)), jetstream.WithPurgeSequence(frames[6].Sequence)); err != nil {
		t.Fatal(err)
	}
	e.exec("DELETE FROM %s WHERE pos > 3"+erase, e.table("app"))
	rep, err = e.proof("")
	if err != nil || rep.Missing != 3 || rep.Pending != 7 || !slices.ContainsFunc(rep.Problems, func(s string) bool { return len(s) > 0 }) {
		t.Errorf("%d missing, %d pending, want 3 and 7: %v, %v", rep.Missing, rep.Pending, rep.Problems, err)
	}
}

func subjectOf(s registry.Shard) string { return s.Ref().Subject() }
