package integration

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// ownEngine is an Almanac whose ClickHouse can be stopped and its data directory
// restored from an older copy.
type ownEngine struct {
	*env
	dir       string
	tcp, http int
	stop      func()
}

func startOwnEngine(t *testing.T, topics ...schemas.Topic) *ownEngine {
	t.Helper()
	o := &ownEngine{dir: filepath.Join(t.TempDir(), "engine")}
	o.env = &env{t: t}
	engine := o.run()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	srv.Engine, srv.ClickHouseHTTP, srv.User, srv.Password, srv.Database = engine, engine.HTTPURL(), engine.User(), engine.Password(), engine.Database()
	for url, port := range map[string]*int{engine.TCPAddr(): &o.tcp, strings.TrimPrefix(engine.HTTPURL(), "http://"): &o.http} {
		_, p, err := net.SplitHostPort(url)
		if err == nil {
			*port, err = strconv.Atoi(p)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	o.env = setUp(t, srv, topics...)
	return o
}

// run starts the engine on the directory, at the ports it had.
func (o *ownEngine) run() *embedded.ClickHouse {
	o.t.Helper()
	engine, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: embeddedtest.FindEngine(o.t), Dir: o.dir, TCPPort: o.tcp, HTTPPort: o.http})
	if err != nil {
		o.t.Fatal(err)
	}
	o.stop = embeddedtest.Run(o.t, engine)
	return engine
}

// copied stops the engine, copies its directory, and starts it again.
func (o *ownEngine) copied() (to string) {
	o.t.Helper()
	to = filepath.Join(o.t.TempDir(), "copy")
	o.stop()
	o.copy(o.dir, to)
	o.run()
	return to
}

// putBack stops the engine and starts it on an earlier copy of its directory.
func (o *ownEngine) putBack(from string) {
	o.t.Helper()
	o.stop()
	if err := os.RemoveAll(o.dir); err != nil {
		o.t.Fatal(err)
	}
	o.copy(from, o.dir)
	o.run()
}

func (o *ownEngine) copy(from, to string) {
	o.t.Helper()
	if out, err := exec.CommandContext(o.t.Context(), "cp", "-Rp", from, to).CombinedOutput(); err != nil {
		o.t.Fatalf("%v: %s", err, out)
	}
}

// ClickHouse is restored as a whole: its data directory becomes an older copy, while
// NATS goes on from where it is. Verify names what is missing and a repair brings it
// back; a sink that lived through it does so by itself, though it had stored all of it
// once; and neither brings back what was erased since the copy.
func TestEngineFolderRestored(t *testing.T) {
	t.Parallel()
	o := startOwnEngine(t, oneLane("app", 30))
	o.router()
	stopSink := o.sink()
	p := o.producer("app")
	n := uint64(0)
	send := func(user string, times int) {
		t.Helper()
		for range times {
			if err := p.Publish(t.Context(), producer.Event{UserID: user, Message: fmt.Sprint(n)}); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	send("u-1", 35)
	send("u-7", 5)
	o.stored("app", 40, 30*time.Second)
	o.closed("app", 30*time.Second)
	older := o.copied() // a closed shard, and one that goes on
	send("u-1", 35)
	send("u-7", 5)
	o.stored("app", 80, 30*time.Second)
	o.closed("app", 30*time.Second)
	want := o.rowsHash("app")
	o.verify(80)

	// Repaired.
	stopSink()
	o.putBack(older)
	if got := o.count("SELECT count() FROM %s", o.table("app")); got != 40 {
		t.Fatalf("%d rows are in the copy", got)
	}
	// The second shard was closed and goes back from position 30 to 10; the third is
	// written to, so that its rows are as good as on their way.
	o.named("all up to position 30 was stored, ClickHouse has it up to 10")
	plan := o.plan()
	if !does(plan, repair.Store) || does(plan, repair.Lost) {
		t.Errorf("planned: %+v", plan.Actions)
	}
	if got := o.count("SELECT count() FROM %s", o.table("app")); got != 40 {
		t.Errorf("a plan changed the table: %d rows", got)
	}
	o.carryOut(plan)
	o.repaired(80)
	if got := o.rowsHash("app"); got != want {
		t.Errorf("the table has %s, want %s", got, want)
	}

	// Under a sink that lives.
	o.sink()
	o.closed("app", 30*time.Second)
	job := o.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}})
	o.verify(80)
	want = o.rowsHash("app")
	o.putBack(older)
	o.stored("app", 75, 60*time.Second) // the copy's 40, and what came since but the 5 erased
	if rep, err := o.proof("app"); err != nil || rep.OK() || rep.Missing != 0 {
		t.Errorf("verify does not say that erased rows came back with the copy, or calls some missing: %v, %v", rep, err)
	}
	again, err := o.eraser().Run(t.Context(), "app", job.ID)
	if err != nil || again.Rows != job.Rows {
		t.Fatalf("the erasure taken up again: %+v, %v", again, err)
	}
	if got := o.rowsHash("app"); got != want {
		t.Errorf("the table has %s, want %s", got, want)
	}
	send("u-1", 3)
	o.stored("app", 73, 30*time.Second)
	o.verify(83)
}
