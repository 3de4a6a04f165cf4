package integration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query/repair"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

func (e *env) repairer() *repair.Repairer {
	e.t.Helper()
	r, err := repair.New(e.t.Context(), repair.Config{NC: e.connect(), Registry: e.reg, DB: e.db, Judge: router.FramesOf(nil), Patience: time.Nanosecond})
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

func (e *env) plan() *repair.Plan {
	e.t.Helper()
	p, err := e.repairer().Plan(e.t.Context(), "")
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
// where a repair can be killed, in turn: between two actions, or between the steps
// of one.
func (e *env) killed() {
	e.t.Helper()
	met := map[string]bool{}
	for run := range 100 {
		ctx, cancel := context.WithCancel(e.t.Context())
		points := 0
		r, err := repair.New(ctx, repair.Config{NC: e.connect(), Registry: e.reg, DB: e.db, Judge: router.FramesOf(nil), Patience: time.Nanosecond, Crash: func(point string) {
			if points++; points == 2+run%4 {
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
	if err := e.repairer().Apply(e.t.Context(), p, func(*repair.Action, error) {}); err != nil {
		e.t.Fatal(err)
	}
}

// named fails the test unless verify finds something wrong and says the words.
func (e *env) named(words string) {
	e.t.Helper()
	rep, err := e.reader().Verify(e.t.Context(), "")
	if err != nil {
		e.t.Fatal(err)
	}
	if rep.OK() || !strings.Contains(strings.Join(rep.Problems, "\n"), words) {
		e.t.Errorf("verify does not say %q: %d missing, %d doubled, %v", words, rep.Missing, rep.Doubled, rep.Problems)
	}
}

// mended plans and applies, twice, and fails the test unless the second plan is
// empty and everything is proven.
func (e *env) mended(accepted uint64) {
	e.t.Helper()
	e.carryOut(e.plan())
	if p := e.plan(); len(p.Actions) > 0 {
		e.t.Errorf("a second plan is not empty: %+v", p.Actions)
	}
	e.verify(accepted)
}

func does(p *repair.Plan, do repair.Do) bool {
	return slices.ContainsFunc(p.Actions, func(a repair.Action) bool { return a.Do == do })
}

func (e *env) exec(format string, a ...any) {
	e.t.Helper()
	if err := e.db.Conn().Exec(e.t.Context(), fmt.Sprintf(format, a...)); err != nil {
		e.t.Fatal(err)
	}
}

func (e *env) kv() jetstream.KeyValue {
	e.t.Helper()
	kv, err := e.reg.JetStream().KeyValue(e.t.Context(), schemas.Bucket)
	if err != nil {
		e.t.Fatal(err)
	}
	return kv
}

func (e *env) shardsStream() jetstream.Stream {
	e.t.Helper()
	s, err := e.reg.JetStream().Stream(e.t.Context(), schemas.StreamShards)
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

// content is a table's rows, whatever their order.
func (e *env) rowsHash(topic string) (s string) {
	e.t.Helper()
	q := "SELECT toString((count(), groupBitXor(sipHash64(* EXCEPT pos)), sum(sipHash64(* EXCEPT pos)))) FROM " + e.table(topic)
	if err := e.db.Conn().QueryRow(e.t.Context(), q).Scan(&s); err != nil {
		e.t.Fatal(err)
	}
	return s
}

const noMerge = " SETTINGS deduplicate_insert = 'disable'"

// What is damaged in table and registry is named by verify, and repair makes it
// what it was, row by row.
func TestRepairRowsAndRegistry(t *testing.T) {
	t.Parallel()
	topic := oneLaneTopic()
	topic.Rotate = schemas.Rotation{Rows: 12}
	e := start(t, topic)
	stopRouter, stopSink := e.router(), e.sink()
	p := e.producer("app")
	const n = 40 // three shards closed, one active
	e.say(p, n)
	e.stored("app", n, 30*time.Second)
	e.closed("app", 30*time.Second)
	want := e.rowsHash("app")
	closed := slices.IndexFunc(e.shards("app"), func(s registry.Shard) bool { return s.Status == registry.Closed })
	one := e.shards("app")[closed]
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
			e.exec("DELETE FROM %s WHERE id = (SELECT max(id) FROM %[1]s WHERE %s)"+erase, e.table("app"), where)
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
			if err := e.kv().Purge(t.Context(), schemas.ShardKey("app", one.Month, one.ID)); err != nil {
				t.Fatal(err)
			}
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
			rep, err := e.reader().Verify(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			if rep.OK() && rep.Pending == 0 || c.words != "" && !strings.Contains(strings.Join(rep.Problems, "\n"), c.words) {
				t.Errorf("verify does not say %q: %d missing, %d doubled, %d pending, %v", c.words, rep.Missing, rep.Doubled, rep.Pending, rep.Problems)
			}
			if p := e.plan(); p.Todo() == 0 {
				t.Error("nothing is planned")
			}
			e.mended(n)
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
	if _, err := e.reg.Correct(e.t.Context(), s.Topic, s.Month, s.ID, func(s *registry.Shard) bool { f(s); return true }); err != nil {
		e.t.Fatal(err)
	}
}

// A frame that SHARDS lost before it was stored comes back from EVENTS; where
// EVENTS has it no more the range is named, and what follows is stored.
func TestRepairGap(t *testing.T) {
	t.Parallel()
	for _, healed := range []bool{true, false} {
		t.Run(fmt.Sprintf("in EVENTS %v", healed), func(t *testing.T) {
			t.Parallel()
			e := start(t, oneLaneTopic())
			e.router()
			p := e.producer("app")
			e.say(p, 10)
			e.routed("app", 10)
			var seqs []uint64
			for _, m := range e.messages(schemas.StreamShards, schemas.ShardsFilter("app")) {
				seqs = append(seqs, m.Sequence)
			}
			for _, seq := range seqs[3:6] { // positions 4 to 6
				if err := e.shardsStream().DeleteMsg(t.Context(), seq); err != nil {
					t.Fatal(err)
				}
			}
			if !healed {
				events, err := e.reg.JetStream().Stream(t.Context(), schemas.StreamEvents)
				if err != nil {
					t.Fatal(err)
				}
				if err := events.Purge(t.Context(), jetstream.WithPurgeSequence(9)); err != nil {
					t.Fatal(err)
				}
			}
			var seen faults
			e.sink(func(c *sinks.Config) { c.Hooks.Fault = func(_ sinks.Ref, err error) { seen.add(err) } })
			eventually(t, 20*time.Second, func() error { return seen.has(sinks.ErrGap) })
			e.named("positions 4 to 6 are missing in SHARDS")
			plan := e.plan()
			e.carryOut(plan)
			e.say(p, 5)
			if healed {
				e.stored("app", 15, 30*time.Second)
				e.mended(15)
				return
			}
			e.stored("app", 12, 30*time.Second)
			again := e.plan()
			for _, p := range []*repair.Plan{plan, again} {
				i := slices.IndexFunc(p.Actions, func(a repair.Action) bool { return a.Do == repair.Lost })
				if i < 0 || p.Actions[i].From != 4 || p.Actions[i].To != 6 || p.Actions[i].Rows != 3 {
					t.Errorf("the loss is not named: %+v", p.Actions)
				}
			}
			e.named("positions 4 to 6 are missing in SHARDS")
		})
	}
}

// The registry is gone. Nobody begins a second life; repair rebuilds it from the
// streams and the table, and routers and sinks go on.
func TestRepairLostRegistry(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*env){
		"deleted": func(e *env) {
			if err := e.reg.JetStream().DeleteKeyValue(e.t.Context(), schemas.Bucket); err != nil {
				e.t.Fatal(err)
			}
		},
		"emptied": func(e *env) {
			s, err := e.reg.JetStream().Stream(e.t.Context(), schemas.KVStream)
			if err == nil {
				err = s.Purge(e.t.Context())
			}
			if err != nil {
				e.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := schemas.NewTopic("app", schemas.Field{Name: "ms", Type: schemas.TypeFloat64})
			topic.Lanes, topic.Rotate = 2, schemas.Rotation{Rows: 10}
			e := start(t, topic)
			stopRouter, stopSink := e.router(), e.sink()
			p := e.producer("app")
			for i := range 60 {
				if err := p.Publish(t.Context(), producer.Event{UserID: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
			e.stored("app", 60, 30*time.Second)
			stopSink()
			for i := range 7 { // routed, not stored
				if err := p.Publish(t.Context(), producer.Event{UserID: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
			e.routed("app", 67)
			before := e.shards("app")
			lose(e)
			// A router that lives, and one that starts, wait.
			for i := range 8 {
				if err := p.Publish(t.Context(), producer.Event{UserID: fmt.Sprint(i)}); err != nil {
					t.Fatal(err)
				}
			}
			limits := schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1}
			if _, err := registry.Setup(t.Context(), e.connect(), limits); err == nil || !strings.Contains(err.Error(), "almanac repair") {
				t.Errorf("Setup over a lost registry: %v", err)
			}
			stopRouter()
			var err error
			if e.reg, err = registry.CreateBucket(t.Context(), e.connect(), limits); err != nil {
				t.Fatal(err)
			}
			var seen faults
			e.router(func(c *router.Config) { c.Hooks.Fault = func(_, _ string, err error) { seen.add(err) } })
			e.sink()
			eventually(t, 20*time.Second, func() error { return seen.has(registry.ErrLost) })
			e.carryOut(e.plan())
			e.stored("app", 75, 30*time.Second)
			after := e.shards("app")
			for _, b := range before {
				i := slices.IndexFunc(after, func(s registry.Shard) bool { return s.ID == b.ID })
				if i < 0 {
					t.Errorf("%s did not come back", b.Name())
				} else if a := after[i]; a.Lane != b.Lane || a.MinTs > b.MaxTs || a.Rows < b.Rows && b.Status == registry.Closed {
					t.Errorf("%s came back as %+v, was %+v", b.Name(), a, b)
				}
			}
			got, err := e.reg.Topic(t.Context(), "app")
			if err != nil || got.Lanes != 2 || len(got.Fields) != 1 || got.Fields[0] != (schemas.Field{Name: "ms", Type: schemas.TypeFloat64, Since: 1}) {
				t.Errorf("the topic came back as %+v, %v", got, err)
			}
			e.mended(75)
			e.whole("app", 75)
		})
	}
}

// A lane's checkpoint is gone: the router does not begin again from the front,
// and goes on where it was once the checkpoint is rebuilt.
func TestRepairLostCheckpoint(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	stop := e.router()
	e.sink()
	p := e.producer("app")
	e.say(p, 20)
	e.publish(schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), 0), "{not json")
	e.stored("app", 20, 30*time.Second)
	e.routed("app", 21)
	stop()
	if err := e.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(schemas.RoutedSubject("app", "0"))); err != nil {
		t.Fatal(err)
	}
	var seen faults
	e.router(func(c *router.Config) { c.Hooks.Fault = func(_, _ string, err error) { seen.add(err) } })
	e.say(p, 5)
	eventually(t, 20*time.Second, func() error { return seen.has(router.ErrNoCheckpoint) })
	if plan := e.plan(); !does(plan, repair.RestoreCheckpoint) {
		t.Errorf("the checkpoint is not restored: %+v", plan.Actions)
	}
	e.named("checkpoint")
	e.carryOut(e.plan())
	e.stored("app", 25, 30*time.Second)
	e.mended(26)
	e.whole("app", 25)
}
