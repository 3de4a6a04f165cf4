package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/removal"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// What takes messages out of the streams, but the janitor, waits for a copy of them too: else what shares a frame with an erased person, a dead letter that is
// sent again, or a message of no topic, is in no part of the copy. After the copy each goes on.
func TestRemovalsWaitForACopy(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	stop := e.router()
	e.sink()
	p := e.producer("app", wholeFrames)
	for i := range 12 { // of several persons in each frame
		p.Log(producer.Event{Time: time.Now(), UserID: fmt.Sprintf("u-%d", i%3), Message: fmt.Sprint(i)})
	}
	e.flush(p)
	e.say(p, 1) // the last message of a lane stays
	month := schemas.MonthOf(time.Now().UnixNano())
	e.publish(schemas.EventsSubject("app", month, 0), "{not json")
	e.say(p, 1)
	e.stored("app", 14, 30*time.Second)
	e.routed("app", 15)
	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-1"}})
	js := e.js()
	_, copying, err := streams.BeginCopying(t.Context(), js)
	if err != nil {
		t.Fatal(err)
	}
	stray := schemas.EventsSubject("nosuch", month, 0)
	e.publish(stray, `{"message":"stray"}`)
	eventually(t, 30*time.Second, func() error { // it is kept as a letter as ever
		if n := len(e.messages(schemas.StreamShards, schemas.DeadSubject("nosuch"))); n != 1 {
			return fmt.Errorf("%d letters of the stray", n)
		}
		return nil
	})
	left := func() string {
		return fmt.Sprint(len(e.messages(schemas.StreamEvents, schemas.SubjectsEvents)), len(e.messages(schemas.StreamShards, schemas.SubjectsShards)),
			len(e.messages(schemas.StreamShards, schemas.DeadSubject("app"))))
	}
	before := left()
	nc := e.connect()
	dead, err := deadletters.New(t.Context(), nc, e.registry(nc), nil, e.db)
	if err != nil {
		t.Fatal(err)
	}
	letGo := func(q deadletters.Request) error {
		q.Topic = "app"
		return dead.Resolve(t.Context(), q, func(o deadletters.Outcome) error { return nil })
	}
	impatient := e.eraser(func(c *erasure.Config) { c.Within = time.Nanosecond })
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"erase --purge", func() error { _, err := impatient.Purge(t.Context(), "app", job.ID); return err }},
		{"dead retry", func() error { return letGo(deadletters.Request{}) }},
		{"dead drop", func() error { return letGo(deadletters.Request{Drop: true}) }},
		{"topics rm", func() error { _, err := removal.Run(t.Context(), e.removals(nil), "app"); return err }},
		{"erase forget", func() error { return impatient.Forget(t.Context(), "app", job.ID, true) }},
	} {
		if err := c.do(); !errors.Is(err, streams.ErrCopying) {
			t.Errorf("%s while the streams are copied: %v", c.name, err)
		}
	}
	if _, err := e.reg.Topic(t.Context(), "app"); err != nil {
		t.Errorf("the topic: %v", err)
	}
	if got := left(); got != before {
		t.Errorf("messages of EVENTS, frames and letters that are left: %s, before %s", got, before)
	}
	if n := len(e.messages(schemas.StreamEvents, stray)); n != 1 {
		t.Errorf("the stray is there %d times", n)
	}
	if err := copying.Still(t.Context()); err != nil {
		t.Errorf("nothing was taken out: %v", err)
	}
	copying.End(t.Context())

	if got, err := e.eraser().Purge(t.Context(), "app", job.ID); err != nil || got.Purged == nil || got.Purged.Frames == 0 || got.Purged.Company == 0 {
		t.Errorf("%+v, %v: want frames purged", got.Purged, err)
	}
	if err := letGo(deadletters.Request{Drop: true}); err != nil {
		t.Error(err)
	}
	eventually(t, 30*time.Second, func() error {
		if n := len(e.messages(schemas.StreamEvents, stray)); n != 0 {
			return fmt.Errorf("the stray is there %d times", n)
		}
		return nil
	})
	if n := len(e.messages(schemas.StreamShards, schemas.DeadSubject("nosuch"))); n != 1 {
		t.Errorf("%d letters of the stray", n)
	}
	stop()
}

// agedOut takes all events out of the streams, as by the time that messages have.
func (e *env) agedOut() {
	e.t.Helper()
	for _, stream := range []string{schemas.StreamEvents, schemas.StreamShards} {
		s, err := streams.Open(e.t.Context(), e.reg.JetStream(), stream)
		if err != nil {
			e.t.Fatal(err)
		}
		for _, m := range e.messages(stream, "") {
			if _, _, _, err := schemas.EventsTokens(m.Subject); err != nil && stream == schemas.StreamEvents {
				continue
			} else if _, err := schemas.ParseShardSubject(m.Subject); err != nil && stream == schemas.StreamShards {
				continue
			}
			if err := s.DeleteMsg(e.t.Context(), m.Sequence); err != nil {
				e.t.Fatal(err)
			}
		}
	}
}

// An erasure whose rows came back with an older ClickHouse keeps whom it named until it is carried out again: who redacts or forgets it
// before that leaves these rows there for good.
func TestErasureOfAnOlderClickHouseKeepsItsNames(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	e.sink()
	e.publishOf("u-1", 3)
	e.publishOf("u-2", 3)
	e.stored("app", 6, 30*time.Second)
	older := sql.QuotedTable(e.srv.Database, "Older")
	e.exec("CREATE TABLE %s AS %s", older, e.table("app"))
	e.exec("INSERT INTO %s SELECT * FROM %s", older, e.table("app"))
	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-1"}})
	e.agedOut()
	e.exec("TRUNCATE TABLE %s", e.table("app"))
	e.exec("ALTER TABLE %s ATTACH PARTITION ALL FROM %s", e.table("app"), older)
	e.exec("TRUNCATE TABLE %s", sql.QuotedTable(e.srv.Database, schemas.TableLedger))
	x := e.eraser()
	if now, err := x.Redact(t.Context(), "app", job.ID); !errors.Is(err, erasure.ErrRequest) || now.Redacted {
		t.Errorf("redacted while its rows are back: %v", err)
	}
	if err := x.Forget(t.Context(), "app", job.ID, false); !errors.Is(err, erasure.ErrRequest) {
		t.Errorf("forgotten while its rows are back: %v", err)
	}
	if _, err := x.Run(t.Context(), "app", job.ID); err != nil {
		t.Fatal(err)
	}
	if n := e.count("SELECT countIf(user_id = 'u-1') FROM %s", e.table("app")); n != 0 {
		t.Errorf("%d rows are left", n)
	}
	if now, err := x.Redact(t.Context(), "app", job.ID); err != nil || !now.Redacted {
		t.Errorf("carried out again: %+v, %v", now, err)
	}
}

// A redaction takes from the registry whom an erasure meant. A copy that has tables from before the erasure and the registry from after it would have the rows,
// and nothing that takes them out.
func TestRedactionWaitsForACopy(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	e.sink()
	e.publishOf("u-1", 3)
	e.publishOf("u-2", 3)
	e.stored("app", 6, 30*time.Second)
	_, copying, err := streams.BeginCopying(t.Context(), e.reg.JetStream()) // it takes tables first
	if err != nil {
		t.Fatal(err)
	}
	job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-1"}})
	e.agedOut()
	x := e.eraser()
	got, err := x.Redact(t.Context(), "app", job.ID)
	if !errors.Is(err, streams.ErrCopying) {
		t.Errorf("while a copy is made: %v", err)
	}
	if got, err = e.reg.Erasure(t.Context(), "app", job.ID); err != nil || got.Redacted || got.State != ledger.Erased || len(got.Users) != 1 || got.Users[0] != "u-1" {
		t.Errorf("%+v, %v: the copy is to know whom it meant", got, err)
	}
	copying.End(t.Context())
	if got, err = x.Redact(t.Context(), "app", job.ID); err != nil || !got.Redacted {
		t.Errorf("after the copy: %+v, %v", got, err)
	}
	state, err := e.reader().State(t.Context())
	if err != nil || state.Erasures[string(ledger.Erased)] != 1 || !state.Oldest.IsZero() {
		t.Errorf("%+v, %v: a redacted erasure is not under way", state, err)
	}
}

// A repair takes rows and messages from where they are wrong, once they are elsewhere.
func TestRepairWaitsForACopy(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	stop := e.router()
	e.sink()
	p := e.producer("app")
	e.say(p, 5)
	e.stored("app", 5, 30*time.Second)
	stop()
	if err := e.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(schemas.RoutedSubject("app", "0"))); err != nil {
		t.Fatal(err)
	}
	plan := e.plan()
	_, copying, err := streams.BeginCopying(t.Context(), e.reg.JetStream())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.repairer().Apply(t.Context(), plan, func(a *repair.Action, err error) {
		if !errors.Is(err, streams.ErrCopying) {
			t.Errorf("%s: %v", a.Do, err)
		}
	}); !errors.Is(err, streams.ErrCopying) {
		t.Errorf("while the streams are copied: %v", err)
	}
	copying.End(t.Context())
	again := e.plan()
	if !does(again, repair.RestoreCheckpoint) {
		t.Errorf("the checkpoint is not restored: %+v", again.Actions)
	}
	e.carryOut(again)
	if does(e.plan(), repair.RestoreCheckpoint) {
		t.Error("the checkpoint is not there after the repair")
	}
}
