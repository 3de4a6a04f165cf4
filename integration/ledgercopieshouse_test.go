package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"testing"
	"time"

	querytimers "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/producer"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// copiesCluster is an Almanac with a topic of each kind, of which a person was erased, and a copy
// of NATS and of ClickHouse from before that.
type copiesCluster struct {
	*onDisk
	older    string // a copy of NATS's directory
	erasures []ledger.Erasure
	stops    []func()
}

func startCopiesCluster(t *testing.T) *copiesCluster {
	t.Helper()
	docs := docsTopic()
	docs.Documents.UserField = "owner"
	h := &copiesCluster{onDisk: startOnDisk(t, oneLane("app", 10), oneLane("purged", 10), docs, meterTopic(t, "usage"), schemas.NewTopicOf(kinds.Audit, "trail"))}
	if _, _, err := timers.ApplyGroup(t.Context(), h.reg, schemas.DefaultTimerTopic, "g", func(g *timer.Group) error { g.Slots = 16; return nil }); err != nil {
		t.Fatal(err)
	}
	h.parts()
	h.speak("before")
	h.allResolved()
	h.stopAll()
	h.older = filepath.Join(t.TempDir(), "older")
	h.stop()
	if err := os.CopyFS(h.older, os.DirFS(h.dir)); err != nil {
		t.Fatal(err)
	}
	h.run()
	h.exec("CREATE DATABASE %s", h.olderDatabase())
	t.Cleanup(func() {
		_ = h.hand.Conn().Exec(context.Background(), "DROP DATABASE IF EXISTS "+h.olderDatabase()+" SYNC")
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
	h.allResolved()
	h.stopAll()
	return h
}

func (h *copiesCluster) olderDatabase() string { return sql.QuoteName(h.srv.Database + "_older") }

// tables are all tables that hold rows.
func (h *copiesCluster) tables() (names []string) {
	h.t.Helper()
	rows, err := h.hand.Conn().Query(h.t.Context(), "SELECT name FROM system.tables WHERE database = $1 AND engine LIKE '%MergeTree' ORDER BY name", h.srv.Database)
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
func (h *copiesCluster) reopen() {
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
func (h *copiesCluster) parts() {
	h.t.Helper()
	h.stops = append(h.stops, h.router(), h.sink(), h.background(h.keeper().Run))
}

func (h *copiesCluster) stopAll() {
	for _, stop := range h.stops {
		stop()
	}
	h.stops = nil
}

// speak has both persons do something in every topic.
func (h *copiesCluster) speak(what string) {
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
				var err error
				if ev, err = (meter.Diff{Time: time.Now().Add(-time.Hour), Meter: "bytes", Provider: "p", Space: "s", Cause: fmt.Sprint(what, i), Customer: user, Delta: 7}).Event(); err != nil {
					h.t.Fatal(err)
				}
				ev.Message = what
			}
			if err := p.Publish(ctx, ev); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	c, te := h.documents("customers"), h.timersOf()
	for _, user := range []string{erasedPerson, keptPerson} {
		if _, err := c.Create(ctx, documents.Draft{ID: what + "-" + user, Path: "p", Body: fmt.Appendf(nil, `{"owner":%q,"what":%q}`, user, what)}); err != nil {
			h.t.Fatal(err)
		}
		if _, _, err := te.Create(ctx, timers.Draft{Group: "g", ID: what + "-" + user, Due: time.Now().Add(time.Hour), URL: "http://127.0.0.1:1/", User: user, Payload: []byte(`"x"`)}); err != nil {
			h.t.Fatal(err)
		}
	}
}

func (h *copiesCluster) timersOf() *timers.Timers {
	h.t.Helper()
	te, err := h.openTimers()
	if err != nil {
		h.t.Fatal(err)
	}
	return te
}

// allResolved waits until everything is stored and proven.
func (h *copiesCluster) allResolved() {
	h.t.Helper()
	eventually(h.t, time.Minute, func() error {
		rep, err := h.proof("")
		if err == nil && (!rep.OK() || rep.Pending > 0) {
			err = fmt.Errorf("%d pending, %q", rep.Pending, rep.Problems)
		}
		return err
	})
}

func (h *copiesCluster) openTimers() (*timers.Timers, error) {
	return timers.Open(h.t.Context(), h.connect(), h.reg.WithThird(h.db), schemas.DefaultTimerTopic, timers.Config{Archive: &querytimers.Archive{DB: h.db}})
}

// streamDir is where NATS keeps a stream, below a directory.
func (h *copiesCluster) streamDir(below, stream string) string {
	h.t.Helper()
	dirs, err := filepath.Glob(filepath.Join(below, "jetstream", "*", "streams", stream))
	if err != nil || len(dirs) != 1 {
		h.t.Fatalf("%s is in %v: %v", stream, dirs, err)
	}
	return dirs[0]
}

// lose deletes streams while NATS is down, or replaces them by their older copies.
func (h *copiesCluster) lose(older bool, names ...string) {
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
func (h *copiesCluster) olderClickHouse() {
	h.t.Helper()
	there := map[string]bool{}
	rows, err := h.hand.Conn().Query(h.t.Context(), "SELECT name FROM system.tables WHERE database = $1", h.srv.Database+"_older")
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
