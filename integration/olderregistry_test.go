package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// copyTo copies NATS's directory while NATS is down.
func (d *onDisk) copyTo(older string) {
	d.t.Helper()
	d.stop()
	if err := os.CopyFS(older, os.DirFS(d.dir)); err != nil {
		d.t.Fatal(err)
	}
	d.run()
	d.reconnect()
}

// takeOlder puts streams of an older copy in the place of those that are there.
func (d *onDisk) takeOlder(older string, names ...string) {
	d.t.Helper()
	d.stop()
	for _, name := range names {
		dirs, err := filepath.Glob(filepath.Join(d.dir, "jetstream", "*", "streams", name))
		from, failed := filepath.Glob(filepath.Join(older, "jetstream", "*", "streams", name))
		if err != nil || failed != nil || len(dirs) != 1 || len(from) != 1 {
			d.t.Fatal(dirs, from, err, failed)
		}
		if err := os.RemoveAll(dirs[0]); err != nil {
			d.t.Fatal(err)
		}
		if err := os.CopyFS(dirs[0], os.DirFS(from[0])); err != nil {
			d.t.Fatal(err)
		}
	}
	d.run()
	d.reconnect()
}

func (d *onDisk) reconnect() {
	d.t.Helper()
	eventually(d.t, 10*time.Second, func() (err error) {
		d.reg, err = registry.Open(d.t.Context(), d.connect())
		return err
	})
}

// The registry and its copies are restored from a copy from before shards were made: lanes rotated since, some frames of
// the youngest shards are not stored, and events come before repair. Repair restores the entries and takes nothing for
// foreign: every row and frame stays, each once, and verify proves it. So it is of documents.
func TestRepairShardsThatAnOlderRegistryLacks(t *testing.T) {
	t.Parallel()
	app, docs := newTopic("app"), docsTopic()
	app.Lanes, app.Rotate = 2, schemas.Rotation{Rows: 10}
	docs.Lanes, docs.Rotate = 1, schemas.Rotation{Rows: 10}
	d := startOnDisk(t, app, docs)
	if _, err := fmt.Sscanf(d.srv.NATSURL, "nats://127.0.0.1:%d", &d.port); err != nil {
		t.Fatal(err)
	}
	stopRouter, stopSink := d.router(), d.sink()
	p := d.producer("app")
	d.say(p, 15)
	create(t, d.documents("customers"), "early-", "p", 15)
	d.stored("app", 15, time.Minute)
	d.stored("customers", 15, time.Minute)
	stopRouter()
	stopSink()
	older := filepath.Join(t.TempDir(), "older")
	d.copyTo(older)
	before := [2]int{len(d.shards("app")), len(d.shards("customers"))}
	stopRouter, stopSink = d.router(), d.sink()
	d.say(p, 60)
	create(t, d.documents("customers"), "late-", "p", 40)
	d.stored("app", 75, time.Minute)
	d.stored("customers", 55, time.Minute)
	stopSink()
	d.say(p, 30) // shards without a row
	d.routed("app", 105)
	stopRouter()
	had := map[schemas.Shard]bool{}
	for i, topic := range []string{"app", "customers"} {
		shards := d.shards(topic)
		if len(shards) <= before[i] { // a slow machine puts more into a frame
			t.Fatalf("%d shards of %s, %d before: nothing was rotated", len(shards), topic, before[i])
		}
		for _, s := range shards {
			had[s.ID] = true
		}
	}
	d.takeOlder(older, schemas.KVStream, schemas.CopiesStream)
	d.router()
	d.sink()
	d.say(p, 5)
	did := map[repair.Do]int{}
	eventually(t, time.Minute, func() error {
		plan := d.plan()
		for _, a := range plan.Actions {
			did[a.Do]++
		}
		if err := d.repairer().Apply(t.Context(), plan, func(*repair.Action, error) {}); err != nil {
			return err // a router or a sink may be faster: it is run again
		}
		for _, topic := range []string{"app", "customers"} {
			rep, err := d.proof(topic)
			if err != nil {
				return err
			}
			if !rep.OK() || rep.Pending > 0 {
				return fmt.Errorf("%+v, %q", rep.Totals, rep.Problems)
			}
		}
		return nil
	})
	if did[repair.RestoreShard] == 0 || did[repair.Lost] > 0 || did[repair.DropStrange] > 0 || did[repair.DropCopies] > 0 {
		t.Errorf("repair did %v", did)
	}
	d.stored("app", 110, time.Minute)
	d.stored("customers", 55, time.Minute)
	for _, topic := range []string{"app", "customers"} {
		for _, s := range d.shards(topic) {
			delete(had, s.ID)
		}
	}
	if len(had) > 0 {
		t.Errorf("shards that did not come back: %v", had)
	}
	d.whole("app", 110)
	d.say(p, 20)
	create(t, d.documents("customers"), "last-", "p", 12)
	d.stored("app", 130, time.Minute)
	d.stored("customers", 67, time.Minute)
	if docs, _ := list(t, d.documents("customers"), documents.Selection{Path: "p"}); len(docs) != 67 || slices.Contains(docs, nil) {
		t.Errorf("%d documents are listed", len(docs))
	}
	rep, err := d.proof("")
	if err != nil || !rep.OK() {
		t.Errorf("%+v, %v", rep, err)
	}
}
