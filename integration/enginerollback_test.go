package integration

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/embedded"
	"github.com/almanac-events/almanac/embedded/embeddedtest"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// ownEngine is a ClickHouse that this test alone uses, on a directory.
func (e *env) ownEngine(dir string) (stop func()) {
	e.t.Helper()
	engine, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: embeddedtest.FindEngine(e.t), Dir: dir})
	if err != nil {
		e.t.Fatal(err)
	}
	stopEngine := embeddedtest.Run(e.t, engine)
	u, err := url.Parse(engine.HTTPURL())
	if err != nil {
		e.t.Fatal(err)
	}
	u.User, u.Path = url.UserPassword(engine.User(), engine.Password()), engine.Database()
	if e.db, err = tables.Open(u.String()); err != nil {
		e.t.Fatal(err)
	}
	db := e.db
	return func() { _ = db.Close(); stopEngine() }
}

// ClickHouse's whole data directory is put back to an older copy. What SHARDS
// holds comes back; of what the janitor purged since, what EVENTS holds; and the
// rest is named, with its positions.
func TestEngineRolledBack(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	e := &env{t: t, srv: srv}
	var err error
	limits := schemas.StreamLimits{EventsBytes: 1 << 30, ShardsBytes: 1 << 30, RegistryBytes: 16 << 20, Replicas: 1}
	if e.reg, err = registry.Setup(t.Context(), e.connect(), limits); err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.reg.Apply(t.Context(), oneLaneTopic(), false); err != nil {
		t.Fatal(err)
	}
	dir, copied := filepath.Join(t.TempDir(), "now"), filepath.Join(t.TempDir(), "then")
	stopEngine := e.ownEngine(dir)
	e.router()
	stopSink := e.sink()
	p := e.producer("app")
	e.say(p, 5)
	e.stored("app", 5, 30*time.Second)
	stopSink()
	stopEngine()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	stopEngine = e.ownEngine(dir)
	stopSink = e.sink()
	e.say(p, 10)
	e.stored("app", 15, 30*time.Second)
	want := e.rowsHash("app")
	stopSink()
	stopEngine()
	// The janitor purged up to 9: of 6 to 9 only EVENTS may tell.
	s := e.shards("app")[0]
	frames := e.messages(schemas.StreamShards, subjectOf(s))
	if err := e.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(subjectOf(s)), jetstream.WithPurgeSequence(frames[9].Sequence)); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(copied, dir); err != nil {
		t.Fatal(err)
	}
	e.ownEngine(dir)
	rep, err := e.reader().Verify(t.Context(), "")
	if err != nil || rep.OK() || rep.Missing != 4 || rep.Pending != 6 {
		t.Errorf("%d missing, %d pending, want 4 and 6: %v, %v", rep.Missing, rep.Pending, rep.Problems, err)
	}
	e.carryOut(e.plan())
	e.sink()
	e.say(p, 3)
	e.stored("app", 18, 30*time.Second)
	e.mended(18)
	e.exec("DELETE FROM %s WHERE message IN ('0', '1', '2') AND pos > 15 SETTINGS lightweight_delete_mode = 'lightweight_update_force'", e.table("app"))
	if got := e.rowsHash("app"); got != want {
		t.Errorf("the table has %s, want %s", got, want)
	}
}
