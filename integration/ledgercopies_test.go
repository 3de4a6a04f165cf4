package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	querydocuments "github.com/almanac-events/almanac/internal/query/documents"
	querytimers "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// copiesHouse is an Almanac with a topic of each kind, of which a person was erased, and a copy
// of NATS and of ClickHouse from before that.
type copiesHouse struct {
	*onDisk
	older    string // a copy of NATS's directory
	erasures []ledger.Erasure
	stops    []func()
}

// copied are the topics that people are erased from.
var copied = []string{"app", "purged", "customers", schemas.DefaultTimerTopic, "trail", "usage"}

// erasedPerson is the user who is erased, keptPerson one who is not. What the former does after
// the erasure has the message "later".
const (
	erasedPerson = "u-erased"
	keptPerson   = "u-kept"
)

func startCopiesHouse(t *testing.T) *copiesHouse {
	t.Helper()
	docs := docsTopic()
	docs.Documents.UserField = "owner"
	h := &copiesHouse{onDisk: startOnDisk(t, oneLane("app", 10), oneLane("purged", 10), docs, meterTopic(t, "usage"), schemas.NewTopicOf(kinds.Audit, "trail"))}
	if _, _, err := timers.ApplyGroup(t.Context(), h.reg, schemas.DefaultTimerTopic, "g", func(g *timer.Group) error { g.Slots = 16; return nil }); err != nil {
		t.Fatal(err)
	}
	h.parts()
	h.speak("before")
	h.settledAll()
	h.stopAll()
	h.older = filepath.Join(t.TempDir(), "older")
	h.stop()
	if err := os.CopyFS(h.older, os.DirFS(h.dir)); err != nil {
		t.Fatal(err)
	}
	h.run()
	h.exec("CREATE DATABASE %s", h.olderDatabase())
	t.Cleanup(func() {
		_ = h.db.Conn().Exec(context.Background(), "DROP DATABASE IF EXISTS "+h.olderDatabase()+" SYNC")
	})
	for _, table := range h.tables() {
		h.exec("CREATE TABLE %s.%s AS %s", h.olderDatabase(), sql.QuoteName(table), h.table(table))
		h.exec("ALTER TABLE %s.%s ATTACH PARTITION ALL FROM %s", h.olderDatabase(), sql.QuoteName(table), h.table(table))
	}
	h.reopen()
	h.parts()
	x := h.eraser()
	for _, topic := range copied {
		req := erasure.Request{Topic: topic, Users: []string{erasedPerson}}
		job, err := x.Start(t.Context(), req)
		if err == nil {
			job, err = x.Run(t.Context(), topic, job.ID)
		}
		if err == nil && topic == "purged" {
			job, err = x.Purge(t.Context(), topic, job.ID)
		}
		if err != nil || job.Rows == 0 {
			t.Fatalf("erasing from %s: %+v, %v", topic, job, err)
		}
		h.erasures = append(h.erasures, job)
	}
	h.speak("later")
	h.settledAll()
	h.stopAll()
	return h
}

func (h *copiesHouse) olderDatabase() string { return sql.QuoteName(h.srv.Database + "_older") }

// tables are all tables that hold rows.
func (h *copiesHouse) tables() (names []string) {
	h.t.Helper()
	rows, err := h.db.Conn().Query(h.t.Context(), "SELECT name FROM system.tables WHERE database = $1 AND engine LIKE '%MergeTree' ORDER BY name", h.srv.Database)
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			h.t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// reopen connects the registry after a restart, as `almanac up` does.
func (h *copiesHouse) reopen() {
	h.t.Helper()
	limits := schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1}
	reg, err := registry.Setup(h.t.Context(), h.connect(), limits)
	if errors.Is(err, registry.ErrLost) {
		reg, err = registry.CreateBucket(h.t.Context(), h.connect(), limits)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.reg = reg
}

// parts starts a router, a sink, and what has the copies of the ledger agree.
func (h *copiesHouse) parts() {
	h.t.Helper()
	h.stops = append(h.stops, h.router(), h.sink(), h.background(h.keeper().Run))
}

func (h *copiesHouse) stopAll() {
	for _, stop := range h.stops {
		stop()
	}
	h.stops = nil
}

// speak has both persons do something in every topic.
func (h *copiesHouse) speak(what string) {
	h.t.Helper()
	ctx := h.t.Context()
	for _, topic := range []string{"app", "purged", "trail", "usage"} {
		p := h.producer(topic, func(c *producer.Config) { c.Linger = -1 })
		for i, user := range []string{erasedPerson, keptPerson, erasedPerson, keptPerson} {
			ev := producer.Event{UserID: user, Message: what}
			switch topic {
			case "trail":
				ev = schemas.Event{Time: time.Now(), Type: kinds.TypeChange, Service: "s", UserID: user, Message: what,
					Attrs: []schemas.Attr{schemas.String("scope", "s"), schemas.String("request_id", fmt.Sprint(what, i)), schemas.String("method", "m"), schemas.String("resource_type", "r"), schemas.String("resource", "x"), schemas.String("state", "committed")}}
			case "usage":
				ev = meter.Diff{Time: time.Now().Add(-time.Hour), Meter: "bytes", Provider: "p", Space: "s", Cause: fmt.Sprint(what, i), Customer: user, Delta: 7}.Event()
				ev.Message = what
			}
			if err := p.Publish(ctx, ev); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	c, te := h.documents("customers"), h.timersOf()
	for _, user := range []string{erasedPerson, keptPerson} {
		if _, err := c.Create(ctx, documents.New{ID: what + "-" + user, Path: "p", Body: fmt.Appendf(nil, `{"owner":%q,"what":%q}`, user, what)}); err != nil {
			h.t.Fatal(err)
		}
		if _, _, err := te.Create(ctx, timers.New{Group: "g", ID: what + "-" + user, Due: time.Now().Add(time.Hour), URL: "http://127.0.0.1:1/", User: user, Payload: []byte(`"x"`)}); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *copiesHouse) timersOf() *timers.Timers {
	h.t.Helper()
	te, err := h.openTimers()
	if err != nil {
		h.t.Fatal(err)
	}
	return te
}

// settledAll waits until everything is stored and proven.
func (h *copiesHouse) settledAll() {
	h.t.Helper()
	eventually(h.t, time.Minute, func() error {
		rep, err := h.proof("")
		if err == nil && (!rep.OK() || rep.Pending > 0) {
			err = fmt.Errorf("%d pending, %q", rep.Pending, rep.Problems)
		}
		return err
	})
}

// shown is what every door shows of the erased person from before the erasure. A door that
// refuses shows nothing.
func (h *copiesHouse) shown() (out []string) {
	h.t.Helper()
	ctx := h.t.Context()
	r := h.reader()
	say := func(format string, a ...any) { out = append(out, fmt.Sprintf(format, a...)) }
	for _, topic := range []string{"app", "purged", "trail", "usage"} {
		if page, err := r.Query(ctx, query.Request{Topic: topic, Where: "user_id = '" + erasedPerson + "' AND message = 'before'", Limit: 100}); err == nil && len(page.Events) > 0 {
			say("query: %d of %s", len(page.Events), topic)
		}
		if body, err := r.SQL(ctx, query.SQLRequest{SQL: fmt.Sprintf("SELECT count() AS n FROM %s WHERE user_id = '%s' AND message = 'before'", h.table(topic), erasedPerson), Format: "TSV"}); err == nil {
			var n int
			_, err := fmt.Fscan(body, &n)
			_ = body.Close()
			if err == nil && n > 0 {
				say("SQL: %d of %s", n, topic)
			}
		}
		if j, err := h.replayer(nil).Begin(ctx, replay.Request{Topic: topic, Where: "user_id = '" + erasedPerson + "' AND message = 'before'"}); err == nil {
			var text bytes.Buffer
			_, _ = j.Run(ctx, &text, replay.Pace{})
			if text.Len() > 0 {
				say("replay of %s: %s", topic, text.String())
			}
		}
	}
	if rep, err := usage.New(r).Report(ctx, usage.Request{Topic: "usage", From: time.Now().Add(-24 * time.Hour).Truncate(time.Second), To: time.Now().Truncate(time.Second), Customer: erasedPerson, GroupBy: usage.Total}); err == nil {
		for _, b := range rep.Bills {
			if b.Causes > 2 {
				say("usage: %+v", b)
			}
		}
	}
	if c, err := documents.Open(ctx, h.connect(), "customers", documents.Config{Archive: querydocuments.New(h.reg, h.db)}); err == nil {
		id := "before-" + erasedPerson
		if d, err := c.Load(ctx, id); err == nil {
			say("document: %+v", d)
		}
		if v, err := c.History(ctx, id); err == nil {
			say("history: %+v", v)
		}
		if page, err := c.List(ctx, documents.Selection{Path: "p"}); err == nil {
			for _, d := range page.Documents {
				if d.ID == id {
					say("list: %+v", d)
				}
			}
		}
	}
	if te, err := h.openTimers(); err == nil {
		if page, err := te.List(ctx, "g", timers.Filter{}); err == nil {
			for _, tm := range page.Timers {
				if tm.User == erasedPerson && strings.HasPrefix(tm.ID, "before") {
					say("timer: %+v", tm)
				}
			}
		}
		if v, err := te.History(ctx, "g", "before-"+erasedPerson); err == nil && slices.ContainsFunc(v, func(tm timers.Timer) bool { return tm.User == erasedPerson }) {
			say("timer's history: %+v", v)
		}
	}
	return out
}

// there fails the test unless what is not erased can be read.
func (h *copiesHouse) there(when string) {
	h.t.Helper()
	ctx := h.t.Context()
	eventually(h.t, time.Minute, func() error {
		c, err := documents.Open(ctx, h.connect(), "customers", documents.Config{Archive: querydocuments.New(h.reg, h.db)})
		if err != nil {
			return err
		}
		if topic := c.Topic(); topic.Documents.UserField != "owner" {
			return fmt.Errorf("the descriptor of documents came back as %+v", topic)
		}
		if _, err := c.Load(ctx, "before-"+keptPerson); err != nil {
			return fmt.Errorf("another's document: %w", err)
		}
		te, err := h.openTimers()
		if err != nil {
			return err
		}
		if _, err := te.Get(ctx, "g", "before-"+keptPerson); err != nil {
			return fmt.Errorf("another's timer: %w", err)
		}
		if n := h.found("app", "user_id = '"+keptPerson+"' AND message = 'before'"); n != 2 {
			return fmt.Errorf("%d events of another, want 2", n)
		}
		return nil
	})
	if h.t.Failed() {
		h.t.Log(when)
	}
}

func (h *copiesHouse) openTimers() (*timers.Timers, error) {
	return timers.Open(h.t.Context(), h.connect(), h.reg.Beside(h.db), schemas.DefaultTimerTopic, timers.Config{Archive: querytimers.Archive{DB: h.db}})
}

// streamDir is where NATS keeps a stream, below a directory.
func (h *copiesHouse) streamDir(below, stream string) string {
	h.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(below, "jetstream", "*", "streams", stream))
	if err != nil || len(dirs) != 1 {
		h.t.Fatalf("%s is in %v: %v", stream, dirs, err)
	}
	return dirs[0]
}

// lose deletes streams while NATS is down, or replaces them by their older copies.
func (h *copiesHouse) lose(older bool, names ...string) {
	h.t.Helper()
	h.stop()
	for _, name := range names {
		dir := h.streamDir(h.dir, name)
		if err := os.RemoveAll(dir); err != nil {
			h.t.Fatal(err)
		}
		if older {
			if err := os.CopyFS(dir, os.DirFS(h.streamDir(h.older, name))); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	h.run()
}

// olderClickHouse puts the tables of before the erasures back, below a server that runs. So what
// readers know of the ledger's copy there may be a second old, which it is not after a restart.
func (h *copiesHouse) olderClickHouse() {
	h.t.Helper()
	there := map[string]bool{}
	rows, err := h.db.Conn().Query(h.t.Context(), "SELECT name FROM system.tables WHERE database = $1", h.srv.Database+"_older")
	if err != nil {
		h.t.Fatal(err)
	}
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			h.t.Fatal(err)
		}
		there[name] = true
	}
	_ = rows.Close()
	for _, table := range h.tables() {
		h.exec("TRUNCATE TABLE %s", h.table(table))
		if there[table] {
			h.exec("ALTER TABLE %s ATTACH PARTITION ALL FROM %s.%s", h.table(table), h.olderDatabase(), sql.QuoteName(table))
		}
	}
	eventually(h.t, 10*time.Second, func() error {
		there, err := h.db.ReadLedger(h.t.Context())
		if err != nil {
			return err
		}
		known, _, err := h.db.KeptLedger(h.t.Context())
		if err == nil && !maps.EqualFunc(known, there, func(a, b schemas.LedgerCopy) bool { return a.Count == b.Count && a.Applied == b.Applied }) {
			err = fmt.Errorf("%d entries are known, of %d", len(known), len(there))
		}
		return err
	})
}

// copyDamages are what may become of the copies of the ledger.
var copyDamages = []struct {
	name string
	do   func(h *copiesHouse)
	// names: what is lost beside the ledger is named by verify.
	names bool
	// always: played by every test run.
	always bool
}{
	{"the registry deleted", func(h *copiesHouse) { h.lose(false, schemas.KVStream) }, false, false},
	{"the registry older", func(h *copiesHouse) { h.lose(true, schemas.KVStream) }, false, false},
	{"its copies deleted", func(h *copiesHouse) { h.lose(false, schemas.CopiesStream) }, false, false},
	{"its copies older", func(h *copiesHouse) { h.lose(true, schemas.CopiesStream) }, false, false},
	{"ClickHouse older", func(h *copiesHouse) { h.olderClickHouse() }, false, false},
	{"ClickHouse lost", func(h *copiesHouse) { h.exec("DROP DATABASE %s SYNC", sql.QuoteName(h.srv.Database)) }, true, false},
	{"the registry and its copies deleted", func(h *copiesHouse) { h.lose(false, schemas.KVStream, schemas.CopiesStream) }, true, false},
	{"the registry and its copies older", func(h *copiesHouse) { h.lose(true, schemas.KVStream, schemas.CopiesStream) }, true, false},
	{"the registry deleted, ClickHouse older", func(h *copiesHouse) { h.lose(false, schemas.KVStream); h.olderClickHouse() }, false, true},
	{"all of NATS older", func(h *copiesHouse) {
		h.lose(true, schemas.KVStream, schemas.CopiesStream, schemas.StreamEvents, schemas.StreamShards, schemas.StreamDocs, schemas.StreamTimers)
	}, true, false},
}

// Whatever copy of the ledger is lost or older, of registry, ClickHouse or all of NATS, a person
// who was erased is shown by no door: not before anything was carried out again, nor after that,
// nor after a repair and a restart. What was not erased can be read, and verify proves it, or
// names what else was lost. ALMANAC_LEDGER_COPIES=all plays all of copyDamages.
func TestErasedStayErasedWhateverCopyIsLost(t *testing.T) {
	t.Parallel()
	for _, c := range copyDamages {
		if !c.always && os.Getenv("ALMANAC_LEDGER_COPIES") == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := startCopiesHouse(t)
			if shown := h.shown(); len(shown) > 0 {
				t.Fatalf("before the damage: %q", shown)
			}
			c.do(h)
			h.reopen()
			none := func(when string) {
				t.Helper()
				for _, what := range h.shown() {
					t.Errorf("%s: %s", when, what)
				}
			}
			none("after the damage")
			for round := range 2 {
				h.parts()
				if c.names { // what else was lost comes first
					h.carryOut(h.plan())
					none(fmt.Sprintf("round %d, repaired at once", round))
				}
				h.agreed()
				none(fmt.Sprintf("round %d, the copies agree", round))
				rep, err := h.quietProof()
				if err != nil {
					t.Fatal(err)
				}
				if !rep.OK() && !c.names {
					t.Errorf("round %d: verify says %d missing, %d doubled, %q", round, rep.Missing, rep.Doubled, rep.Problems)
				}
				none(fmt.Sprintf("round %d, verified", round))
				h.carryOut(h.plan())
				none(fmt.Sprintf("round %d, repaired", round))
				if !c.names || round > 0 {
					h.there(fmt.Sprintf("round %d", round))
				}
				h.stopAll()
				h.stop()
				h.run()
				h.reopen()
			}
			none("at the end")
			all, err := h.reg.Beside(h.db).Ledgers(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, job := range h.erasures {
				i := slices.IndexFunc(all[job.Topic], func(e ledger.Erasure) bool { return e.ID == job.ID })
				if i < 0 || all[job.Topic][i].State != ledger.Erased || all[job.Topic][i].Rows != job.Rows {
					t.Errorf("erasure %s of %s, of %d rows, is not what it was: %+v", job.ID, job.Topic, job.Rows, all[job.Topic])
				}
			}
		})
	}
}

// agreed waits until the copies of the ledger agree and every erasure is carried out again.
func (h *copiesHouse) agreed() {
	h.t.Helper()
	reg := h.reg.Beside(h.db)
	eventually(h.t, time.Minute, func() error {
		all, err := reg.Ledgers(h.t.Context())
		if err != nil {
			return err
		}
		behind, err := reg.Behind(h.t.Context(), all)
		if err == nil && len(behind) > 0 {
			err = fmt.Errorf("to be carried out again: %v", behind)
		}
		return err
	})
}

// quietProof is what verify says once it says the same for two seconds, or proves everything.
func (h *copiesHouse) quietProof() (rep *verify.Report, err error) {
	h.t.Helper()
	last, since := "", time.Now()
	eventually(h.t, time.Minute, func() error {
		if rep, err = h.proof(""); err != nil {
			return err
		}
		if rep.OK() && rep.Pending == 0 {
			return nil
		}
		if text := fmt.Sprint(rep.Totals, rep.Problems); text != last {
			last, since = text, time.Now()
		}
		if time.Since(since) > 2*time.Second {
			return nil
		}
		return fmt.Errorf("not quiet yet: %s", last)
	})
	return rep, err
}
