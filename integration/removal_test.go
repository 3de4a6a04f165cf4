package integration

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/maintenance/removal"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// removals is how the tests here remove topics.
func (e *env) removals(crash func(string)) removal.Config {
	return removal.Config{Registry: e.registry(e.connect()), DB: e.db, QuietTime: 3 * time.Second, Crash: crash}
}

// remove removes a topic, by two processes at once, and holds that nothing of it is left.
func (e *env) remove(topic string) registry.Removal {
	e.t.Helper()
	other := make(chan error, 1)
	ctx, cfg := e.t.Context(), e.removals(nil)
	go func() { // two at once
		_, err := removal.Run(ctx, cfg, topic)
		other <- err
	}()
	d, err := removal.Run(e.t.Context(), e.removals(nil), topic)
	if second := <-other; err != nil || second != nil || d.Ended == nil {
		e.t.Fatalf("removing %s: %+v, %v; by another at once: %v", topic, d, err, second)
	}
	if left, err := removal.Look(e.t.Context(), e.removals(nil), topic); err != nil || !left.Nothing() {
		e.t.Errorf("of %s there is left: %v, %v", topic, left, err)
	}
	if _, err := e.reg.Topic(e.t.Context(), topic); !errors.Is(err, schemas.ErrUnknownTopic) {
		e.t.Errorf("%s after its removal: %v", topic, err)
	}
	return d
}

// TestRemovedTopics removes a topic of each kind while router, sink and rollups run: all of it is gone, others are whole, and the name
// can be used again, by another kind too.
func TestRemovedTopics(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app"), newTopic("apps"), newTopic("app_b"), docsTopic(), schemas.NewTopicOf(kinds.Meter, "usage"))
	e.rollups()
	for _, topic := range []string{"app", "apps", "app_b"} {
		p := e.producer(topic)
		e.say(p, 40)
		e.stored(topic, 40, time.Minute)
	}
	c := e.documents("customers")
	create(t, c, "d-", "p", 30)
	e.stored("customers", 30, time.Minute)
	te := e.timers()
	te.createTimers(20, func(int) time.Time { return time.Now().Add(time.Hour) })
	e.stored(schemas.DefaultTimerTopic, 20, time.Minute)
	e.diffs("usage", meter.Diff{Time: time.Now(), Meter: "m", Provider: "p", Space: "s", Cause: "c-1", Delta: 3})
	e.stored("usage", 1, time.Minute)
	for id, of := range map[string][]string{"of-app": {"app", "apps"}, "into-app": {"apps", "app"}, "of-others": {"apps", "app_b"}} {
		if err := e.reg.SaveJob(t.Context(), &registry.Job{ID: id, Verb: "replay-into", Topics: of, State: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	for topic, rows := range map[string]uint64{"app": 40, "customers": 30, schemas.DefaultTimerTopic: 20, "usage": 1} {
		if d := e.remove(topic); d.Took["rows"] < rows || d.Took["tables"] == 0 || d.Took[schemas.StreamShards] == 0 {
			t.Errorf("removing %s took %v", topic, d.Took)
		}
	}
	if n := e.count("SELECT count() FROM system.tables WHERE database = '%s' AND match(name, '^(app|customers|usage|timers)($|_recent|_once|_latest|[.])')", e.db.Database); n != 0 {
		t.Errorf("%d tables and views are left", n)
	}
	if jobs, err := e.reg.Jobs(t.Context(), "replay-into"); err != nil || len(jobs) != 1 || jobs[0].ID != "of-others" {
		t.Errorf("jobs are left: %v, %v", jobs, err)
	}
	for _, topic := range []string{"apps", "app_b"} {
		e.whole(topic, 40)
		e.verified(topic)
	}
	e.verify(80)
	if _, _, err := e.reg.Apply(t.Context(), newTopic("customers"), false); err != nil { // a log now
		t.Fatal(err)
	}
	if _, _, err := e.reg.Apply(t.Context(), newTopic("app", schemas.Field{Name: "endpoint", Type: schemas.TypeString}), false); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"app", "customers"} {
		p := e.producer(topic)
		e.say(p, 25)
		e.stored(topic, 25, time.Minute)
		e.whole(topic, 25)
	}
	if _, _, err := timers.ApplyGroup(t.Context(), e.reg, schemas.DefaultTimerTopic, "g", func(g *timer.Group) error { g.Slots = 8; return nil }); err != nil {
		t.Errorf("a group of the removed topic's name, with other slots: %v", err)
	}
	e.verify(130)
}

// TestRemovalKilled kills the removal of a topic at each of its steps: the next run goes on, nothing else can be done with the topic, verify names
// it and repair restores nothing. One process stops before it drops the topic's table, and goes on when the name is another topic's: it takes nothing of that.
func TestRemovalKilled(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app"))
	p := e.producer("app")
	e.say(p, 40)
	e.stored("app", 40, time.Minute)
	points := map[string]bool{}
	var wake chan struct{}
	woken := make(chan error, 1)
	for n := 1; ; n++ {
		at := 0
		err := untilKilled(func() error {
			_, err := removal.Run(t.Context(), e.removals(func(point string) {
				points[point] = true
				if at++; at == n {
					panic(killed(point))
				}
			}), "app")
			return err
		})
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) || n > 100 {
			t.Fatal(err)
		}
		if _, _, err := e.reg.Apply(t.Context(), newTopic("app", schemas.Field{Name: "more", Type: schemas.TypeString}), false); !errors.Is(err, registry.ErrRemoving) {
			t.Errorf("killed at %d: declaring the topic: %v", n, err)
		}
		if _, err := registry.Setup(t.Context(), e.connect(), schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1}); err != nil {
			t.Errorf("killed at %d: a process that starts: %v", n, err)
		}
		if points["asked"] && wake == nil {
			wake = make(chan struct{})
			e.stopsBeforeDrop("app", wake, woken)
		}
		if n == 2 || n == 6 {
			e.namedAsRemoving("app")
			if p := e.plan(); len(p.Actions) > 0 {
				t.Errorf("killed at %d: repair would do %v", n, p.Actions)
			}
		}
	}
	for _, point := range []string{"entered", "forgotten", "purged", "asked", "dropped", "entries", "looked"} {
		if !points[point] {
			t.Errorf("it was not killed at %q", point)
		}
	}
	if left, err := removal.Look(t.Context(), e.removals(nil), "app"); err != nil || !left.Nothing() {
		t.Errorf("there is left: %v, %v", left, err)
	}
	e.verify(0)
	if _, _, err := e.reg.Apply(t.Context(), newTopic("app"), false); err != nil {
		t.Fatal(err)
	}
	p = e.producer("app")
	e.say(p, 25)
	e.stored("app", 25, time.Minute)
	close(wake)
	if err := <-woken; err != nil {
		t.Errorf("a process that stopped before a drop: %v", err)
	}
	e.whole("app", 25)
	e.verify(25)
}

// stopsBeforeDrop begins a removal in a process that stops before it drops the topic's table, after it was told that the removal is under way.
func (e *env) stopsBeforeDrop(topic string, wake <-chan struct{}, woken chan error) {
	e.t.Helper()
	stopped, once, dropping := make(chan struct{}), sync.Once{}, ""
	cfg := e.removals(func(point string) {
		if point == "asked" && dropping == "dropping "+topic {
			once.Do(func() { close(stopped); <-wake })
		}
	})
	cfg.Step = func(what string) { dropping = what }
	ctx := e.t.Context()
	go func() {
		_, err := removal.Run(ctx, cfg, topic)
		woken <- err
	}()
	select {
	case <-stopped:
	case err := <-woken:
		e.t.Fatalf("it ended before it dropped the table: %v", err)
	}
}

// namedAsRemoving holds that verify names a removal that is under way, and nothing as lost.
func (e *env) namedAsRemoving(topic string) {
	e.t.Helper()
	rep, err := e.proof("")
	if err != nil {
		e.t.Fatal(err)
	}
	if len(rep.Problems) != 1 || rep.OK() {
		e.t.Errorf("verify while %s is being removed: %q", topic, rep.Problems)
	}
	v, err := verify.New(e.connect(), e.reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	if lost, err := v.Lost(e.t.Context(), ""); err != nil || len(lost) > 0 {
		e.t.Errorf("lost: %v, %v", lost, err)
	}
}

// late sends frames of a topic again, as a program does that does not hear of its removal, and returns how many events they have.
func (e *env) late(frames []*streams.Message) (events uint64) {
	e.t.Helper()
	for _, m := range frames {
		again := nats.NewMsg(m.Subject)
		again.Data = m.Data
		for k, v := range m.Header {
			if !strings.HasPrefix(k, "Nats-") {
				again.Header[k] = v
			}
		}
		if _, err := e.js().PublishMsg(e.t.Context(), again); err != nil {
			e.t.Fatal(err)
		}
		rows, err := strconv.ParseUint(m.Header.Get(schemas.HeaderRows), 10, 64)
		if err != nil {
			e.t.Fatal(err)
		}
		events += rows
	}
	return events
}

// TestRemovedTopicIsStillSentTo has a producer that runs since before a removal, whose events are refused from then on, frames of a program that
// does not hear of it, and a copy from before: such frames are not dead letters, but counted with their senders' names, and a table that is there again
// is named and can be removed again.
func TestRemovedTopicIsStillSentTo(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app"), newTopic("other"))
	p := e.producer("app")
	e.say(p, 40)
	e.stored("app", 40, time.Minute)
	spooled := e.messages(schemas.StreamEvents, schemas.TopicFilter("app"))
	e.exec("CREATE TABLE %s AS %s", e.table("Copy"), e.table("app"))
	e.exec("INSERT INTO %s SELECT * FROM %s", e.table("Copy"), e.table("app"))
	e.remove("app")
	if err := p.Publish(t.Context(), producer.Event{Message: "late"}); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Errorf("a producer that ran since before: %v", err)
	}
	late := e.late(spooled)
	e.publish("events.app.2026-11.0", `{"message":"bare"}`)
	eventually(t, time.Minute, func() error {
		d, err := e.reg.Removal(t.Context(), "app")
		if err == nil && (d.Late.Events != late+1 || len(d.Late.Producers) != 1) {
			err = fmt.Errorf("counted are %+v", d.Late)
		}
		return err
	})
	eventually(t, time.Minute, func() error {
		if n := len(e.messages(schemas.StreamEvents, schemas.TopicFilter("app"))); n > 0 {
			return fmt.Errorf("%d messages are in EVENTS", n)
		}
		return nil
	})
	if n := len(e.messages(schemas.StreamShards, schemas.DeadSubject("app"))); n > 0 {
		t.Errorf("%d dead letters", n)
	}
	e.verify(0)
	e.exec("RENAME TABLE %s TO %s", e.table("Copy"), e.table("app"))
	rep, err := e.proof("")
	if err != nil || len(rep.Problems) != 1 {
		t.Errorf("verify of a table that came back: %v, %v", rep, err)
	}
	if p := e.plan(); len(p.Actions) > 0 {
		t.Errorf("repair would do %v", p.Actions)
	}
	if d := e.remove("app"); d.Late.Events != late+1 {
		t.Errorf("removed again, it counts %+v", d.Late)
	}
	e.verify(0)
	again := newTopic("app")
	if _, _, err := e.reg.Apply(t.Context(), again, false); err != nil {
		t.Fatal(err)
	}
	late += e.late(spooled) // of the topic that was removed
	e.say(e.producer("app"), 5)
	e.stored("app", 5, time.Minute)
	eventually(t, time.Minute, func() error {
		d, err := e.reg.Removal(t.Context(), "app")
		if err == nil && d.Late.Events != late+1 {
			err = fmt.Errorf("after the name is declared again, there are counted %+v", d.Late)
		}
		return err
	})
	if n := len(e.messages(schemas.StreamShards, schemas.DeadSubject("app"))); n > 0 {
		t.Errorf("%d dead letters of the new topic", n)
	}
	e.whole("app", 5)
	e.verify(5)
	if _, did, err := e.reg.Apply(t.Context(), again, false); err != nil || did != registry.Unchanged {
		t.Errorf("the same declaration once more: %s, %v", did, err)
	}
	if _, err := removal.Run(t.Context(), e.removals(nil), "never"); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Errorf("removing what never was: %v", err)
	}
}

// TestRemovedNameIsRestored loses the descriptor of a topic that was declared under a removed one's name, with ClickHouse's copy and without: it is named
// as lost and restored, and frames of the removed topic stay late.
func TestRemovedNameIsRestored(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app"))
	e.say(e.producer("app"), 10)
	e.stored("app", 10, time.Minute)
	spooled := e.messages(schemas.StreamEvents, schemas.TopicFilter("app"))
	e.remove("app")
	if _, _, err := e.reg.Apply(t.Context(), newTopic("app"), false); err != nil {
		t.Fatal(err)
	}
	live, err := e.reg.Topic(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	e.say(e.producer("app"), 15)
	e.stored("app", 15, time.Minute)
	for _, copied := range []bool{true, false} {
		e.purgeKey(schemas.TopicKey("app"))
		if !copied {
			e.exec("ALTER TABLE %s DELETE WHERE key = '%s' SETTINGS mutations_sync = 1", e.table(schemas.TableLedger), schemas.TopicKey("app"))
		}
		e.named("run `almanac repair app`, which restores its descriptor")
		e.repaired(15)
		if now, err := e.reg.Topic(t.Context(), "app"); err != nil || now.First != live.First || now.Version != live.Version {
			t.Errorf("copied %t: restored is %+v, %v; it was %+v", copied, now, err, live)
		}
	}
	late := e.late(spooled)
	eventually(t, time.Minute, func() error {
		d, err := e.reg.Removal(t.Context(), "app")
		if err == nil && d.Late.Events != late {
			err = fmt.Errorf("counted are %+v, expected %d", d.Late, late)
		}
		return err
	})
	e.whole("app", 15)
	e.verify(15)
}
