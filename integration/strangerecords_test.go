package integration

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/timers/timerstest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/timers"
)

// strange are messages that a client published on a key's own subject: none is a record, and none of a document a
// lock. Those that pass themselves off as one that is not an event become foreign.
var strange = []struct {
	name    string
	header  nats.Header
	data    []byte
	foreign bool
}{
	{"text", nil, []byte("x"), false},
	{"nothing", nil, nil, false},
	{"the largest", nil, bytes.Repeat([]byte("j"), schemas.MaxMessageBytes-256), false},
	{"another op", nats.Header{schemas.HeaderOp: {"burned"}}, []byte("{}"), false},
	{"numbers that are none", nats.Header{schemas.HeaderOp: {schemas.OpStored}, schemas.HeaderVersion: {"9999999999999999999999"}}, []byte("{}"), false},
	{"a body that is not JSON", nats.Header{
		schemas.HeaderOp: {schemas.OpStored}, schemas.HeaderVersion: {"9"}, schemas.HeaderKeyCreated: {"1"}, schemas.HeaderChanged: {"2"},
		schemas.HeaderLife: {"00000000-0000-7000-8000-000000000000"}, schemas.HeaderRevision: {"1"}, schemas.HeaderDue: {"1"},
	}, []byte("{"), false},
	{"a stub of nowhere", nats.Header{schemas.HeaderOp: {schemas.OpStored}, schemas.HeaderStub: {"nowhere"}}, nil, true},
	{"a blank", nats.Header{schemas.HeaderBlank: {"7"}}, nil, true},
}

// putStrange publishes a message on a subject as any client can; replacing takes the place of what is there.
func (e *env) putStrange(subject string, h nats.Header, data []byte, replacing bool) {
	e.t.Helper()
	m := nats.NewMsg(subject)
	for name, v := range h {
		m.Header[name] = v
	}
	if m.Data = data; replacing {
		m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	if _, err := e.js().PublishMsg(e.t.Context(), m); err != nil {
		e.t.Fatal(err)
	}
}

// What is not a record on a document's own subject hides nothing: the document is read, listed, locked and written as
// before, whether it is stored or not. A router keeps the message as a dead letter and takes it out; then the
// cleaner does its work, and an erasure too. One that took the document's place: nothing is written until repair has
// restored what was stored, and verify names what may have been lost.
func TestStrangeMessagesOnDocuments(t *testing.T) {
	t.Parallel()
	topic := docsTopic()
	topic.Documents.UserField = "owner"
	e := start(t, topic)
	c := e.documents("customers")
	subject := func(id string) string {
		tp := c.Topic()
		return schemas.DocSubject("customers", document.Lane(&tp, id), id)
	}
	id := func(i int) string { return fmt.Sprint("d-", i) }
	put := func(id string, n int) {
		t.Helper()
		if _, err := c.Put(t.Context(), documents.Draft{ID: id, Path: "p", Body: fmt.Appendf(nil, `{"n":%d,"owner":"u-%s"}`, n, id)}); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
	is := func(when, id string, version uint64) {
		t.Helper()
		d, err := c.Load(t.Context(), id)
		many, failed := c.LoadMany(t.Context(), []string{id, "d-none"})
		if err != nil || d.Version != version || failed != nil || many[0] == nil || many[0].Version != version || many[1] != nil {
			t.Errorf("%s: %s: %+v, %v; %+v, %v", when, id, d, err, many, failed)
		}
	}
	for i := range strange {
		put(id(i), 1)
	}
	var stop func()
	for round, when := range []string{"not routed", "stored"} {
		version := uint64(2*round + 1)
		var ops []documents.Op
		for i, s := range strange {
			e.putStrange(subject(id(i)), s.header, s.data, false)
			is(when+", "+s.name, id(i), version)
			ops = append(ops, documents.Op{Kind: documents.Put, ID: id(i), Body: []byte(`{"n":2}`)})
		}
		if h, err := c.History(t.Context(), id(0)); err != nil || len(h) != int(version) {
			t.Errorf("%s: a history of %d, %v", when, len(h), err)
		}
		if docs, _ := list(t, c, documents.Selection{Path: "p"}); len(docs) != len(strange) {
			t.Errorf("%s: %d are listed", when, len(docs))
		}
		if l, err := c.Lock(t.Context(), id(1), "me", time.Hour); err != nil {
			t.Error(err)
		} else {
			e.putStrange(schemas.DocLockSubject("customers", document.Lane(&topic, id(1)), id(1)), nats.Header{schemas.HeaderOp: {"mine"}}, []byte("x"), false)
			if held, err := c.Locked(t.Context(), id(1)); err != nil || held == nil || held.Token != l.Token {
				t.Errorf("%s: the lock is %+v, %v", when, held, err)
			}
			if err := c.Unlock(t.Context(), id(1), l.Token); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Create(t.Context(), documents.Draft{ID: id(0), Body: []byte(`{}`)}); !errors.Is(err, documents.ErrExists) {
			t.Errorf("%s: an id that is taken: %v", when, err)
		}
		if _, err := c.Batch(t.Context(), ops...); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		for i, s := range strange {
			e.putStrange(subject(id(i)), s.header, s.data, false)
			is(when+", written, "+s.name, id(i), version+1)
		}
		e.putStrange(subject("d-free"), nil, []byte("x"), false)
		if _, err := c.Load(t.Context(), "d-free"); !errors.Is(err, documents.ErrNotFound) {
			t.Errorf("%s: an id that is free: %v", when, err)
		}
		if round == 0 {
			stop = e.router()
			e.sink()
		}
		e.stored("customers", uint64(len(strange))*(version+1), time.Minute)
		e.swept(subject, id)
		e.provenDead("customers")
		if round == 0 {
			for i := range strange { // one more version each, so that the next round is of odd versions
				put(id(i), 3)
			}
			e.stored("customers", uint64(len(strange))*3, time.Minute)
		}
	}
	if _, err := c.Create(t.Context(), documents.Draft{ID: "d-free", Path: "q", Body: []byte(`{}`)}); err != nil {
		t.Error(err)
	}
	e.stored("customers", uint64(len(strange))*4+1, time.Minute)
	if done := e.clean(e.cleaner(), cold); done.Held > 0 || done.Stubbed != len(strange)+1 {
		t.Errorf("the cleaner did %+v", done)
	}

	// Messages that take the place of documents: stored, stored and written since without a router, and of nothing.
	stop()
	put(id(1), 5) // version 5, never routed
	for _, s := range []int{0, 1, 5} {
		e.putStrange(subject(id(s)), strange[s].header, strange[s].data, true)
	}
	e.putStrange(subject("d-none"), nil, []byte("x"), true)
	if _, err := c.Load(t.Context(), id(0)); !errors.Is(err, documents.ErrArchive) {
		t.Errorf("what may be on its way: %v", err)
	}
	e.router()
	eventually(t, time.Minute, func() error {
		if p := e.plan(); !does(p, repair.RestoreStubs) || !does(p, repair.DropMisplaced) {
			return fmt.Errorf("%+v, %q", p.Actions, p.Notes)
		}
		return nil
	})
	if docs, _ := list(t, c, documents.Selection{Path: "p"}); len(docs) != len(strange) {
		t.Errorf("replaced: %d are listed", len(docs))
	}
	for _, n := range []int{0, 1, 5} {
		is("replaced", id(n), 4)
		if _, err := c.Put(t.Context(), documents.Draft{ID: id(n), Body: []byte(`{}`)}); !errors.Is(err, fronts.ErrReplaced) || !strings.Contains(err.Error(), "almanac repair") {
			t.Errorf("a write where another took the place: %v", err)
		}
	}
	rep := e.fronts("customers")
	said := strings.Join(rep.Problems, "\n")
	if rep.OK() || rep.Topics[0].Front.Differ != 4 || strings.Count(said, "not stored yet is lost") != 4 || !strings.Contains(said, subject(id(1))) {
		t.Errorf("%+v: %s", rep.Topics[0].Front, said)
	}
	e.killed()
	if p := e.plan(); p.Todo() != 0 {
		t.Errorf("%+v is still to be done", p.Actions)
	}
	for _, n := range []int{0, 1, 5} {
		is("repaired", id(n), 4)
		put(id(n), 6)
		is("written", id(n), 5)
	}
	put("d-none", 1)
	rep = e.fronts("customers")
	if rep.Topics[0].Front.Differ != 0 || len(rep.Problems) != 4 {
		t.Errorf("%+v: %q", rep.Topics[0].Front, rep.Problems)
	}
	e.stored("customers", uint64(len(strange))*4+5, time.Minute)

	// An erasure passes over what lies above a person's document.
	e.putStrange(subject(id(2)), nil, []byte("x"), false)
	job, err := e.eraser().Start(t.Context(), erasure.Request{Topic: "customers", Users: []string{"u-" + id(1), "u-" + id(5)}})
	if err != nil {
		t.Fatal(err)
	}
	e.putStrange(subject(id(1)), nil, []byte("x"), false)
	e.putStrange(subject(id(5)), nil, []byte("x"), true)
	if job, err = e.eraser().Run(t.Context(), "customers", job.ID); err != nil || job.State != ledger.Erased {
		t.Fatalf("%+v, %v", job, err)
	}
	if _, err := c.Load(t.Context(), id(1)); !errors.Is(err, documents.ErrNotFound) {
		t.Errorf("an erased document: %v", err)
	}
}

// provenDead waits until verify proves a topic of which messages became dead letters.
func (e *env) provenDead(topic string) {
	e.t.Helper()
	eventually(e.t, time.Minute, func() error {
		if rep := e.fronts(topic); !rep.OK() || rep.Pending > 0 || rep.Dead == 0 || rep.Topics[0].Front.Differ+rep.Topics[0].Front.Waiting > 0 {
			return fmt.Errorf("%+v, %+v, %q", rep.Totals, rep.Topics[0].Front, rep.Problems)
		}
		return nil
	})
}

// swept waits until no message but records is left in DOCS.
func (e *env) swept(subject func(string) string, id func(int) string) {
	e.t.Helper()
	eventually(e.t, time.Minute, func() error {
		for _, m := range e.messages(schemas.StreamDocs, ">") {
			if _, err := document.Parse(m.Subject, m.Sequence, m.Header, m.Data, len(m.Data)); err != nil && !strings.HasPrefix(m.Subject, "doclocks.") {
				return fmt.Errorf("message %d on %s: %w", m.Sequence, m.Subject, err)
			}
		}
		return nil
	})
}

// What is not a record on a timer's own subject calls nothing and holds nothing up: pending timers are read, changed,
// deleted and called on time, while a dispatcher runs and before. One that took a timer's place: repair puts back what
// was stored, and verify names it.
func TestStrangeMessagesOnTimers(t *testing.T) {
	t.Parallel()
	e := start(t).timers()
	due := time.Now().Add(6 * time.Second)
	const n = 24 // more than are read one by one
	timerstest.Create(t.Context(), t, e.Timers, e.url, "id-", n, func(int) time.Time { return due })
	timerstest.Create(t.Context(), t, e.Timers, e.url, "late", 3, func(int) time.Time { return time.Now().Add(time.Hour) })
	g, err := e.reg.TimerGroup(t.Context(), schemas.DefaultTimerTopic, "g")
	if err != nil {
		t.Fatal(err)
	}
	topic, err := e.reg.Topic(t.Context(), schemas.DefaultTimerTopic)
	if err != nil {
		t.Fatal(err)
	}
	subject := func(id string) string {
		key, err := g.Key(id, topic.Lanes)
		if err != nil {
			t.Fatal(err)
		}
		return key.Subject()
	}
	junk := func(id string, i int) { e.putStrange(subject(id), strange[i].header, strange[i].data, false) }
	ids := named("id", n)
	for i, id := range ids {
		if junk(id, i%len(strange)); i == 0 {
			if tm, err := e.Get(t.Context(), "g", id); err != nil || tm.State != "pending" {
				t.Errorf("%+v, %v", tm, err)
			}
		}
	}
	junk("late0", 0)
	junk("late1", 3)
	if _, err := e.Update(t.Context(), "g", "late0", timers.Always, timers.Change{Due: new(time.Now().Add(2 * time.Hour))}); err != nil {
		t.Errorf("an update: %v", err)
	}
	if _, err := e.Delete(t.Context(), "g", "late1", timers.Always); err != nil {
		t.Errorf("a delete: %v", err)
	}
	e.dispatcher() // before a router takes anything out
	for i, id := range ids {
		junk(id, i%len(strange))
	}
	stop := e.router()
	e.sink()
	eventually(t, time.Minute, func() error {
		if e.called() < n {
			return fmt.Errorf("%d of %d were called", e.called(), n)
		}
		return nil
	})
	e.onTime(false, 1, ids...)
	e.stored(schemas.DefaultTimerTopic, 3*n+3+2, time.Minute)
	e.provenDead(schemas.DefaultTimerTopic)

	stop()
	for _, id := range []string{"late2", "never"} {
		e.putStrange(subject(id), nil, []byte("x"), true)
	}
	if _, err := e.Get(t.Context(), "g", "late2"); !errors.Is(err, fronts.ErrReplaced) {
		t.Errorf("a timer whose place another took: %v", err)
	}
	e.router()
	eventually(t, time.Minute, func() error {
		if p := e.plan(); !does(p, repair.RestoreTimers) || !does(p, repair.DropMisplaced) {
			return fmt.Errorf("%+v, %q", p.Actions, p.Notes)
		}
		return nil
	})
	e.frontDiffers(1, `timer "late2" of group "g"`, "not stored yet is lost", subject("never"))
	e.repaired()
	if _, err := e.FireNow(t.Context(), "g", "late2"); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() error {
		if e.called() != n+1 {
			return fmt.Errorf("%d were called", e.called())
		}
		return nil
	})
	e.onTime(false, 1, "late2")
	if m := e.messages(schemas.StreamTimers, subject("never")); len(m) > 0 {
		t.Errorf("what took the place of nothing is still there: %+v", m)
	}
}
