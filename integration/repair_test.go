package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

func (e *env) repairer() *repair.Repairer {
	e.t.Helper()
	r, err := repair.New(e.t.Context(), repair.Config{NC: e.connect(), Registry: e.reg, DB: e.db, Check: router.FramesOf(nil), MaxWait: time.Nanosecond})
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

func (e *env) plan() *repair.Plan {
	e.t.Helper()
	p, err := answered(func() (*repair.Plan, error) { return e.repairer().Plan(e.t.Context(), "") })
	if err != nil {
		e.t.Fatal(err)
	}
	for _, a := range p.Actions {
		e.t.Logf("%s %s %s, %d rows from %s: %s", a.Do, a.Where, a.Positions(), a.Rows, a.Source, a.Detail)
	}
	for _, n := range p.Notes {
		e.t.Logf("note: %s", n)
	}
	return p
}

// killed repairs in many runs, each of which ends at the second to fifth point
// where a repair can be killed, in turn, and at later ones in later runs: between two
// actions, or between the steps of one.
func (e *env) killed() {
	e.t.Helper()
	met := map[string]bool{}
	for run := range 100 {
		ctx, cancel := context.WithCancel(e.t.Context())
		points := 0
		r, err := repair.New(ctx, repair.Config{NC: e.connect(), Registry: e.reg, DB: e.db, Check: router.FramesOf(nil), MaxWait: time.Nanosecond, Crash: func(point string) {
			if points++; points == 2+run%(4+run/8) {
				met[point] = true
				cancel()
			}
		}})
		if err != nil {
			e.t.Fatal(err)
		}
		p, err := r.Plan(ctx, "")
		if err == nil && p.Todo() > 0 {
			err = r.Apply(ctx, p, func(*repair.Action, error) {})
			if err != nil && ctx.Err() == nil {
				e.logf("repair: %v", err)
			}
			cancel()
			continue
		}
		cancel()
		if err != nil {
			e.t.Fatal(err)
		}
		e.logf("killed at: %v", slices.Sorted(maps.Keys(met)))
		return
	}
	e.t.Errorf("a hundred runs did not repair everything: %v", e.plan().Actions)
}

func (e *env) carryOut(p *repair.Plan) {
	e.t.Helper()
	eventually(e.t, 20*time.Second, func() error { // parts that run may change meanwhile what it goes by: it says to run it again
		err := e.repairer().Apply(e.t.Context(), p, func(*repair.Action, error) {})
		if err != nil {
			p = e.plan()
		}
		return err
	})
}

// named fails the test unless verify finds something wrong and says the words.
func (e *env) named(words string) {
	e.t.Helper()
	rep, err := e.proof("")
	if err != nil {
		e.t.Fatal(err)
	}
	if rep.OK() || !strings.Contains(strings.Join(rep.Problems, "\n"), words) {
		e.t.Errorf("verify does not say %q: %d missing, %d doubled, %v", words, rep.Missing, rep.Doubled, rep.Problems)
	}
}

// repaired plans and applies, twice, and fails the test unless the second plan is
// empty and everything is proven.
func (e *env) repaired(accepted uint64) {
	e.t.Helper()
	e.carryOut(e.plan())
	if p := e.plan(); len(p.Actions) > 0 {
		e.t.Errorf("a second plan is not empty: %+v", p.Actions)
	}
	e.verify(accepted)
}

// A router that rotates between a plan and its end changes the month's entry; what the
// plan was to set right there is set right all the same.
func TestRepairWhileShardsRotate(t *testing.T) {
	t.Parallel()
	e := startDozens(t)
	e.router()
	e.sink()
	p := e.producer("app")
	one := e.dozens(p, 40)[0]
	e.purgeKey(schemas.ShardKey("app", one.Month, one.ID))
	plan := e.plan()
	if !does(plan, repair.RestoreMonth) {
		t.Fatalf("the month's entry is not to be changed: %+v", plan.Actions)
	}
	e.say(p, 30)
	e.routed("app", 70)
	e.carryOut(plan)
	e.stored("app", 70, 30*time.Second)
	e.resolved()
	e.repaired(70)
}

func does(p *repair.Plan, do repair.Do) bool {
	return slices.ContainsFunc(p.Actions, func(a repair.Action) bool { return a.Do == do })
}

func (e *env) exec(format string, a ...any) {
	e.t.Helper()
	if err := e.hand.Conn().Exec(e.t.Context(), fmt.Sprintf(format, a...)); err != nil {
		e.t.Fatal(err)
	}
}

// buckets are the registry's and that of its copies.
func (e *env) buckets() []jetstream.KeyValue {
	e.t.Helper()
	kv, err := e.js().KeyValue(e.t.Context(), schemas.Bucket)
	if err != nil {
		e.t.Fatal(err)
	}
	copies, err := e.js().KeyValue(e.t.Context(), schemas.BucketCopies)
	if err != nil {
		e.t.Fatal(err)
	}
	return []jetstream.KeyValue{kv, copies}
}

func (e *env) shardsStream() jetstream.Stream {
	e.t.Helper()
	s, err := e.js().Stream(e.t.Context(), schemas.StreamShards)
	if err != nil {
		e.t.Fatal(err)
	}
	return s
}

// say publishes n events, one frame each.
func (e *env) say(p *producer.Producer, n int) {
	e.t.Helper()
	for i := range n {
		if err := p.Publish(e.t.Context(), producer.Event{Message: fmt.Sprint(i), UserID: "u"}); err != nil {
			e.t.Fatal(err)
		}
	}
}

// rowsHash is a table's rows, whatever their order.
func (e *env) rowsHash(topic string) (s string) {
	e.t.Helper()
	q := "SELECT toString((count(), groupBitXor(sipHash64(*)), sum(sipHash64(*)))) FROM " + e.table(topic)
	if err := e.hand.Conn().QueryRow(e.t.Context(), q).Scan(&s); err != nil {
		e.t.Fatal(err)
	}
	return s
}

// startDozens is start with a topic of one lane whose shards are left at twelve rows.
func startDozens(t *testing.T) *env {
	t.Helper()
	topic := oneLaneTopic()
	topic.Rotate = schemas.Rotation{Rows: 12}
	return start(t, topic)
}

// dozens has n events stored, and returns the shards that are closed, three or more.
func (e *env) dozens(p *producer.Producer, n int) []registry.Shard {
	e.t.Helper()
	e.say(p, n)
	e.stored("app", uint64(n), 30*time.Second)
	closed := slices.DeleteFunc(e.closed("app", 30*time.Second), func(s registry.Shard) bool { return s.Status != registry.Closed })
	if len(closed) < 3 {
		e.t.Fatalf("%d shards are closed, want three: %s", len(closed), describe(closed))
	}
	return closed
}

const noMerge = " SETTINGS deduplicate_insert = 'disable'"

// What is damaged in table and registry is named by verify, and repair makes it
// what it was, row by row.
func TestRepairRowsAndRegistry(t *testing.T) {
	t.Parallel()
	const n = 40
	e := startDozens(t)
	stopRouter, stopSink := e.router(), e.sink()
	p := e.producer("app")
	one := e.dozens(p, n)[0]
	want := e.rowsHash("app")
	where := fmt.Sprintf("month = %d AND shard = %d", uint32(one.Month), uint64(one.ID))
	partition := schemas.PartitionID(one.Month, one.ID)
	// Sinks believe what they saw stored: they must not be needed, nor disturbed.
	const erase = " SETTINGS lightweight_delete_mode = 'lightweight_update_force'"
	for _, c := range []struct {
		name, words string
		damage      func()
	}{
		{"a deleted row", "", func() {
			e.exec("DELETE FROM %s WHERE %s AND message = '%d'"+erase, e.table("app"), where, e.count("SELECT toUInt64(min(toUInt64(message))) FROM %s WHERE %s", e.table("app"), where)+1)
		}},
		{"a doubled part", "ClickHouse has 24", func() {
			e.exec("INSERT INTO %s SELECT * FROM %[1]s WHERE %s"+noMerge, e.table("app"), where)
		}},
		{"a doubled row and a deleted one", "", func() {
			e.exec("INSERT INTO %s SELECT * FROM %[1]s WHERE %s ORDER BY id LIMIT 1"+noMerge, e.table("app"), where)
			// Below the head: a sink brings back a head that is gone, while copies are dropped.
			e.exec("DELETE FROM %s WHERE id = (SELECT max(id) FROM %[1]s WHERE %s AND pos < (SELECT max(pos) FROM %[1]s WHERE %[2]s))"+erase, e.table("app"), where)
		}},
		{"rows in the middle", "ClickHouse has", func() {
			e.exec("DELETE FROM %s WHERE %s AND id IN (SELECT id FROM %[1]s WHERE %[2]s ORDER BY id LIMIT 5 OFFSET 3)"+erase, e.table("app"), where)
		}},
		{"a partition dropped", "", func() { e.exec("ALTER TABLE %s DROP PARTITION ID '%s'", e.table("app"), partition) }},
		{"a partition detached", "", func() { e.exec("ALTER TABLE %s DETACH PARTITION ID '%s'", e.table("app"), partition) }},
		{"a table dropped", "", func() { e.exec("DROP TABLE %s SYNC", e.table("app")) }},
		{"a wrong count in the registry", "closed with 999 rows", func() {
			e.edit(one, func(s *registry.Shard) { s.Rows = 999 })
		}},
		{"a wrong range in the registry", "readers may pass over", func() {
			e.edit(one, func(s *registry.Shard) { s.MinTs = s.MaxTs })
		}},
		{"a shard's entry deleted", "the registry does not know it", func() {
			e.purgeKey(schemas.ShardKey("app", one.Month, one.ID))
		}},
		{"a frame of SHARDS gone, stored", "missing in SHARDS", func() {
			frames := e.messages(schemas.StreamShards, schemas.ShardSubject("app", one.Month, one.ID))
			if err := e.shardsStream().DeleteMsg(t.Context(), frames[4].Sequence); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := *e
			e.t = t
			c.damage()
			rep, err := e.proof("")
			if err != nil {
				t.Fatal(err)
			}
			// A sink notices by itself that a table has fewer rows (TestEmptiedTables), and may have been faster.
			healed := strings.HasPrefix(c.name, "a partition") || strings.HasPrefix(c.name, "a table")
			if !healed && rep.OK() && rep.Pending == 0 || c.words != "" && !strings.Contains(strings.Join(rep.Problems, "\n"), c.words) {
				t.Errorf("verify does not say %q: %d missing, %d doubled, %d pending, %v", c.words, rep.Missing, rep.Doubled, rep.Pending, rep.Problems)
			}
			if p := e.plan(); p.Todo() == 0 && !healed {
				t.Error("nothing is planned")
			}
			e.repaired(n)
			if got := e.rowsHash("app"); got != want {
				t.Errorf("the table has %s, want %s", got, want)
			}
		})
	}
	stopRouter()
	stopSink()
	e.router()
	e.sink()
	e.say(p, 5)
	e.stored("app", n+5, 30*time.Second)
	e.verify(n + 5)
}

// edit changes a shard's entry behind the registry's back.
func (e *env) edit(s registry.Shard, f func(*registry.Shard)) {
	e.t.Helper()
	if _, err := e.reg.Correct(e.t.Context(), s.Ref(), func(s *registry.Shard) bool { f(s); return true }); err != nil {
		e.t.Fatal(err)
	}
}

// The entry of a closed shard is written between a plan that corrects it and its end: what it says then stays.
func TestRepairLeavesWhatWasWrittenSince(t *testing.T) {
	t.Parallel()
	const n = 40
	e := startDozens(t)
	e.router()
	e.sink()
	one := e.dozens(e.producer("app"), n)[0]
	e.edit(one, func(s *registry.Shard) { s.Rows = 999 })
	p := e.plan()
	e.edit(one, func(s *registry.Shard) { s.Rows = 7 }) // as an erasure does
	if err := e.repairer().Apply(t.Context(), p, func(*repair.Action, error) {}); !errors.Is(err, registry.ErrConflict) {
		t.Errorf("an entry is corrected by an older reading of it: %v", err)
	}
	if now, err := e.reg.Shard(t.Context(), one.Ref()); err != nil || now.Rows != 7 {
		t.Errorf("the entry says %d rows (%v), and was written with 7 since the plan", now.Rows, err)
	}
	e.repaired(n)
}
