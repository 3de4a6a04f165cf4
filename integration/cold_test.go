package integration

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	coldshards "github.com/almanac-events/almanac/internal/maintenance/cold"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// volumes are those that have a topic's closed shards.
func (e *env) volumes(topic string) string {
	e.t.Helper()
	rows, err := e.reader().Shards(e.t.Context(), topic, "")
	if err != nil {
		e.t.Fatal(err)
	}
	var on []string
	for _, r := range rows {
		if r.Status != registry.Closed {
			continue
		}
		for _, p := range r.Places {
			if p.Bytes == 0 {
				e.t.Errorf("%s takes no bytes on %s", r.Name, p.Volume)
			}
			if !slices.Contains(on, p.Volume) {
				on = append(on, p.Volume)
			}
		}
	}
	slices.Sort(on)
	return fmt.Sprint(on)
}

// The closed shards of a month move to the second disk while events flow, with kills between. There they are proven,
// read, erased, cleared, repaired and rebuilt as on the first one; and they move back when the option is taken away.
func TestColdShards(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic.Rotate = schemas.Rotation{Rows: 500}
	e := running(t, topic)
	const n = 3000
	e.fill("app", n, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	e.stored("app", n, time.Minute)
	e.closed("app", time.Minute)
	e.verify(n)
	before := e.found("app", "user_id = 'u-8'")

	live := e.producer("app")
	sent := uint64(0)
	flow := func() {
		if sent+20 >= topic.Rotate.Rows { // their shard stays open, however often a step is tried again
			return
		}
		for range 20 {
			live.Log(producer.Event{Time: time.Now(), UserID: "live"})
			sent++
		}
		e.flush(live)
	}
	nc := e.connect()
	mover := func(crash string, now time.Time) *coldshards.Mover {
		return coldshards.New(coldshards.Config{Registry: e.registry(nc), DB: e.db, Now: func() time.Time { return now }, Crash: func(p string) {
			if flow(); p == crash {
				panic(killed(p))
			}
		}})
	}
	topic.ColdAfterDays = 30
	e.apply(topic)
	if at := e.volumes("app"); at != "[default]" {
		t.Fatalf("before any move the shards are on %s", at)
	}
	for _, point := range []string{"cold.after-policy", "cold.after-move", "cold.after-move"} {
		if err := untilKilled(func() error { return mover(point, time.Now()).Round(t.Context()) }); !errors.Is(err, errKilled) {
			t.Fatalf("%s: %v", point, err)
		}
	}
	if at := e.volumes("app"); at != "[cold default]" {
		t.Errorf("after the kills the shards are on %s", at)
	}
	moves := func(now time.Time, want string) {
		t.Helper()
		eventually(t, time.Minute, func() error { // a merge may hold a part
			err := mover("", now).Round(t.Context())
			if at := e.volumes("app"); err == nil && at != want {
				err = fmt.Errorf("the shards are on %s, want %s", at, want)
			}
			return err
		})
	}
	proven := func(what string, rows uint64) {
		t.Helper()
		e.stored("app", rows, time.Minute)
		rep, err := e.full()
		if err != nil || !rep.OK() {
			t.Errorf("%s: %v %+v", what, err, rep)
		}
	}
	moves(time.Now(), "[cold]")
	proven("moved", n+sent)
	if got := e.found("app", "user_id = 'u-8'"); got != before || got == 0 {
		t.Errorf("a page has %d events, it had %d", got, before)
	}
	moves(time.Now(), "[cold]") // again, with nothing to do

	e.restoredElsewhere("app")

	gone := e.closed("app", time.Minute)[0]
	if err := e.db.DropShard(t.Context(), gone.Ref()); err != nil {
		t.Fatal(err)
	}
	r, err := repair.New(t.Context(), repair.Config{NC: nc, Registry: e.registry(nc), DB: e.db, Check: router.FramesOf(nil)})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := r.Plan(t.Context(), "app")
	if err == nil {
		err = r.Apply(t.Context(), plan, func(*repair.Action, error) {})
	}
	if err != nil {
		t.Fatal(err)
	}
	proven("repaired", n+sent)
	moves(time.Now(), "[cold]")

	const each = n / 50
	e.erase(erasure.Request{Topic: "app", Where: "user_id = 'u-7'"})
	if got := e.found("app", "user_id = 'u-7'"); got != 0 {
		t.Errorf("%d events of an erased user are left", got)
	}
	proven("erased", n+sent-each)
	moves(time.Now(), "[cold]")

	if _, err := rebuild.Run(t.Context(), rebuild.Config{NATS: nc, Registry: e.registry(nc), DB: e.db}, "app", true); err != nil {
		t.Fatal(err)
	}
	if at := e.volumes("app"); at != "[cold]" {
		t.Errorf("after a rebuild the shards are on %s", at)
	}
	proven("rebuilt", n+sent-each)

	topic.Anonymise = schemas.Anonymise{AfterDays: 40, Fields: []string{"user_id"}}
	e.apply(topic)
	tidy := func() error { // the sink's own rounds may be in its way
		j, err := retention.New(t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.db})
		if err != nil {
			t.Fatal(err)
		}
		return j.Round(t.Context())
	}
	eventually(t, time.Minute, func() error {
		if err := tidy(); err != nil {
			return err
		}
		for _, s := range e.shards("app") {
			if s.Status == registry.Closed && s.AnonymisedAt.IsZero() {
				return fmt.Errorf("not cleared: %s", s.Name())
			}
		}
		return nil
	})
	moves(time.Now(), "[cold]")
	proven("cleared", n+sent-each)

	topic.ColdAfterDays = 0
	e.apply(topic)
	moves(time.Now(), "[default]")
	proven("moved back", n+sent-each)

	topic.ColdAfterDays = 30
	e.apply(topic)
	moves(time.Now(), "[cold]")
	topic.KeepDays = 60
	e.apply(topic)
	eventually(t, time.Minute, func() error {
		if err := tidy(); err != nil {
			return err
		}
		for _, s := range e.shards("app") { // the month's last one is active, and too young to be retired
			if s.Status == registry.Closed || s.Status == registry.Dropping {
				return fmt.Errorf("not dropped: %s", s.Name())
			}
		}
		return nil
	})
	proven("dropped", e.count("SELECT count() FROM %s", e.table("app")))
}

// restoredElsewhere restores a copy of a topic's table as on a server that does not know its storage policy: all rows are there,
// under the policy of a new table.
func (e *env) restoredElsewhere(topic string) {
	e.t.Helper()
	at, err := url.Parse(e.srv.HTTPDSNOf(embedded.UserAlmanac))
	if err != nil {
		e.t.Fatal(err)
	}
	at.Path += "_restored"
	db, err := tables.Open(at.String())
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.MakeDatabase(e.t.Context())
	if err == nil {
		err = e.db.BackUp(e.t.Context(), []string{topic}, e.srv.Database+"-cold", "", nil)
	}
	if err == nil {
		err = db.Restore(e.t.Context(), e.srv.Database, []string{topic}, e.srv.Database+"-cold", true, nil)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	all, err := e.db.All(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	was := all[slices.IndexFunc(all, func(h tables.Held) bool { return h.Name == topic })]
	if all, err = db.All(e.t.Context()); err != nil || len(all) != 1 || all[0].Rows != was.Rows || all[0].Partitions != was.Partitions ||
		was.Policy != schemas.StoragePolicy || all[0].Policy != "default" {
		e.t.Errorf("%v: restored %+v of %+v", err, all, was)
	}
}

// A topic is refused whose closed shards have nowhere to move: by the name of the topic and of the volume.
func TestNoColdVolume(t *testing.T) {
	t.Parallel()
	var none tables.Storage
	if err := none.CanCold("app"); !errors.Is(err, tables.ErrNoCold) {
		t.Errorf("%v, want %v", err, tables.ErrNoCold)
	}
}
