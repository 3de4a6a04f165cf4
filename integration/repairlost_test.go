package integration

import (
	"errors"
	"fmt"
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
	"github.com/almanac-events/almanac/sinks"
)

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
				events, err := e.js().Stream(t.Context(), schemas.StreamEvents)
				if err != nil {
					t.Fatal(err)
				}
				if err := events.Purge(t.Context(), jetstream.WithPurgeSequence(9)); err != nil {
					t.Fatal(err)
				}
			}
			var seen faults
			e.sink(func(c *sinkConfig) { c.Hooks.Fault = func(_ schemas.ShardRef, err error) { seen.add(err) } })
			eventually(t, 20*time.Second, func() error { return seen.has(sinks.ErrGap) })
			e.named("positions 4 to 6 are missing in SHARDS")
			plan := e.plan()
			e.carryOut(plan)
			e.say(p, 5)
			if healed {
				e.stored("app", 15, 30*time.Second)
				e.repaired(15)
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

// The registry is gone. No router begins a second life; repair rebuilds it from the
// streams and the table, and routers and sinks go on.
func TestRepairLostRegistry(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*env){
		"deleted": func(e *env) {
			for _, bucket := range []string{schemas.Bucket, schemas.BucketCopies} {
				if err := e.js().DeleteKeyValue(e.t.Context(), bucket); err != nil {
					e.t.Fatal(err)
				}
			}
		},
		"emptied": func(e *env) {
			e.purgeStreams(schemas.KVStream, schemas.CopiesStream)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := newTopic("app", schemas.Field{Name: "ms", Type: schemas.TypeFloat64})
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
			eventually(t, 30*time.Second, func() error { // a router or a sink may be faster: it is run again
				return e.repairer().Apply(t.Context(), e.plan(), func(*repair.Action, error) {})
			})
			e.stored("app", 75, 30*time.Second)
			after := e.shards("app")
			for _, b := range before {
				i := slices.IndexFunc(after, func(s registry.Shard) bool { return s.ID == b.ID })
				if i < 0 {
					t.Errorf("%s did not come back", b.Name())
				} else if a := after[i]; a.MinTs > b.MaxTs || a.Rows < b.Rows && b.Status == registry.Closed {
					t.Errorf("%s came back as %+v, was %+v", b.Name(), a, b)
				}
			}
			got, err := e.reg.Topic(t.Context(), "app")
			if err != nil || got.Lanes != 2 || len(got.Fields) != 1 || got.Fields[0] != (schemas.Field{Name: "ms", Type: schemas.TypeFloat64, Since: 1}) {
				t.Errorf("the topic came back as %+v, %v", got, err)
			}
			e.repaired(75)
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
	e.repaired(26)
	e.whole("app", 25)
}

// A checkpoint that passes what ClickHouse had when it was planned is not written over a table that was emptied since.
func TestRepairCheckpointOfAnEmptiedTable(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	stopRouter, stopSink := e.router(), e.sink()
	e.say(e.producer("app"), 20)
	e.stored("app", 20, 30*time.Second)
	stopSink()
	stopRouter()
	if err := e.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(schemas.RoutedSubject("app", "0"))); err != nil {
		t.Fatal(err)
	}
	plan := e.plan()
	if !does(plan, repair.RestoreCheckpoint) {
		t.Fatalf("the checkpoint is not restored: %+v", plan.Actions)
	}
	e.exec("TRUNCATE TABLE %s", e.table("app"))
	if err := e.repairer().Apply(t.Context(), plan, func(*repair.Action, error) {}); !errors.Is(err, registry.ErrConflict) {
		t.Errorf("over an emptied table: %v, want ErrConflict", err)
	}
	e.router()
	e.sink()
	e.stored("app", 20, 30*time.Second)
	e.carryOut(e.plan())
	e.repaired(20)
	e.whole("app", 20)
}
