package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
)

// moveRow moves a row of a shard from one position to another.
func (e *env) moveRow(s registry.Shard, from, to uint64) {
	e.t.Helper()
	where := fmt.Sprintf("month = %d AND shard = %d", uint32(s.Month), uint64(s.ID))
	e.exec("INSERT INTO %s SELECT * REPLACE (%d AS pos) FROM (SELECT * FROM %[1]s WHERE %[3]s AND pos = %[4]d)"+noMerge, e.table("app"), to, where, from)
	e.exec("DELETE FROM %s WHERE %s AND pos = %d"+force, e.table("app"), where, from)
}

// A row at another frame's position is named, wherever the frames tell of both, although the shard has each event once:
// also beside an erasure, and where what was there before was proven. Repair has it stand at its own again, wherever it is killed.
func TestVerifyFindsMovedRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before   func(e *env, s registry.Shard)
		from, to uint64
		words    string
	}{
		"up":             {func(*env, registry.Shard) {}, 3, 5, "position 3 brought 1 rows, ClickHouse has 0"},
		"down":           {func(*env, registry.Shard) {}, 5, 3, "position 5 brought 1 rows, ClickHouse has 0"},
		"into a row's":   {func(*env, registry.Shard) {}, 2, 3, "position 3 brought 1 rows, ClickHouse has 2"},
		"beside erasure": {func(e *env, _ registry.Shard) { e.erase(erasure.Request{Topic: "app", Users: []string{"u-3"}}) }, 7, 6, "position 7 brought 1 rows, ClickHouse has 0"},
		"from what was purged": {func(e *env, s registry.Shard) {
			msgs := e.messages("SHARDS", s.Ref().Subject())
			if err := e.shardsStream().Purge(e.t.Context(), jetstream.WithPurgeSubject(s.Ref().Subject()), jetstream.WithPurgeSequence(msgs[4].Sequence)); err != nil {
				e.t.Fatal(err)
			}
		}, 2, 9, "position 9 brought 1 rows, ClickHouse has 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := startDozens(t)
			e.router()
			e.sink()
			p := e.producer("app")
			for i := range 40 {
				if err := p.Publish(t.Context(), producer.Event{Message: fmt.Sprint(i), UserID: fmt.Sprintf("u-%d", i%10)}); err != nil {
					t.Fatal(err)
				}
			}
			e.stored("app", 40, 30*time.Second)
			s := e.closed("app", 30*time.Second)[0]
			c.before(e, s)
			e.verify(40)
			want := e.rowsHash("app")
			e.moveRow(s, c.from, c.to)
			e.named(c.words)
			if name == "from what was purged" {
				return // which row lacks there is not known any more
			}
			e.killed()
			if got := e.rowsHash("app"); got != want {
				t.Errorf("after repair the rows are %s, were %s", got, want)
			}
			e.verify(40)
		})
	}
}

// A row that is at no other position of the shard stays, though its frame did not bring it, and the note says what to do.
func TestRepairLeavesARowOfItsOwn(t *testing.T) {
	t.Parallel()
	e := startDozens(t)
	e.router()
	e.sink()
	s := e.dozens(e.producer("app"), 40)[0]
	e.exec("INSERT INTO %s SELECT * REPLACE (toUUID('00000000-0000-7000-8000-000000000001') AS id) FROM (SELECT * FROM %[1]s WHERE shard = %[2]d AND pos = 3)"+noMerge, e.table("app"), uint64(s.ID))
	e.named("position 3 brought 1 rows, ClickHouse has 2")
	want := e.rowsHash("app")
	p := e.plan()
	if does(p, repair.DropMoved) || !strings.Contains(strings.Join(p.Notes, "\n"), "delete it in ClickHouse") {
		t.Errorf("planned: %+v, %v", p.Actions, p.Notes)
	}
	e.carryOut(p)
	if got := e.rowsHash("app"); got != want {
		t.Errorf("after repair the rows are %s, were %s", got, want)
	}
}
