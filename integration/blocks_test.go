package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// onDisk is an Almanac whose NATS can be stopped and its files damaged.
type onDisk struct {
	*env
	dir  string
	port int // 0: another one after each restart
	stop func()
}

func startOnDisk(t *testing.T, topics ...schemas.Topic) *onDisk {
	t.Helper()
	d := &onDisk{dir: embeddedtest.NATSDir(t)}
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	d.env = &env{t: t, srv: srv}
	d.run()
	d.env = setUp(t, srv, topics...)
	return d
}

// run starts NATS on the directory, and connects the registry.
func (d *onDisk) run() {
	d.t.Helper()
	server, err := embedded.NewNATS(embedded.NATSConfig{Dir: d.dir, Port: d.port, MaxStoreBytes: 8 << 30})
	if err != nil {
		d.t.Fatal(err)
	}
	d.stop = embeddedtest.Run(d.t, server)
	d.srv.NATS, d.srv.NATSURL = server, server.ClientURL()
}

// damaged stops NATS, lets f change a stream's blocks, and starts it again. hard
// is what a crash leaves: no state file beside the blocks, which are then read
// from their beginning.
func (d *onDisk) damaged(stream string, hard bool, f func(block []byte) []byte) {
	d.t.Helper()
	d.stop()
	blocks, err := filepath.Glob(filepath.Join(d.dir, "jetstream", "*", "streams", stream, "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		d.t.Fatalf("no blocks of %s in %s: %v", stream, d.dir, err)
	}
	if hard {
		_ = os.Remove(filepath.Join(filepath.Dir(blocks[0]), "index.db"))
	}
	block, err := os.ReadFile(blocks[0])
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(blocks[0], f(block), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.run()
	ctx, cancel := context.WithTimeout(d.t.Context(), maxWait*10*time.Second)
	defer cancel()
	if d.reg, err = registry.Open(ctx, d.connect()); err != nil {
		d.t.Fatal(err)
	}
}

// cut flips a bit at a third of a stream, and starts NATS as after a crash: the stream
// ends there. The bit is in a message's subject, which its checksum covers; not every
// byte of a block is covered, such as the length of a subject.
func (d *onDisk) cut(stream string) {
	d.t.Helper()
	before := d.stream(stream)
	d.damaged(stream, true, func(block []byte) []byte {
		third := len(block) / 3
		at := bytes.Index(block[third:], []byte(strings.ToLower(stream)+"."))
		if at < 0 {
			d.t.Fatalf("%s does not have a message after its third", stream)
		}
		block[third+at] ^= 4
		return block
	})
	if after := d.stream(stream); after.LastSeq >= before.LastSeq || after.LastSeq == 0 {
		d.t.Fatalf("%s ends at %d after %d messages: it was not cut", stream, after.LastSeq, before.LastSeq)
	}
}

// flip changes one byte inside the nth message on a subject.
func flip(t *testing.T, subject string, n int) func([]byte) []byte {
	return func(block []byte) []byte {
		at := 0
		for range n {
			i := bytes.Index(block[at:], []byte(subject))
			if i < 0 {
				t.Fatalf("the block does not have %d messages on %s", n, subject)
			}
			at += i + len(subject)
		}
		block[at+20] ^= 0x40 // in the headers
		return block
	}
}

// ten has ten events routed, a frame each, and stored as well if asked for; stop ends
// the router and the sink.
func (d *onDisk) ten(stored bool, change ...func(*sinkConfig)) (stop func()) {
	d.t.Helper()
	stopRouter, stopSink := d.router(), func() {}
	if stored {
		stopSink = d.sink(change...)
	}
	p := d.producer("app")
	d.say(p, 10)
	d.routed("app", 10)
	if stored {
		d.stored("app", 10, 30*time.Second)
	}
	if err := p.Close(d.t.Context()); err != nil {
		d.t.Fatal(err)
	}
	return func() { stopRouter(); stopSink() }
}

// A byte of SHARDS flips while the server is down, before and after its frames
// were stored, and with and without the state file that tells the server not to
// look. It is named, and no event is lost or doubled.
func TestFlippedByteInShards(t *testing.T) {
	t.Parallel()
	for _, hard := range []bool{false, true} {
		for _, stored := range []bool{false, true} {
			t.Run(fmt.Sprintf("hard %v stored %v", hard, stored), func(t *testing.T) {
				t.Parallel()
				d := startOnDisk(t, oneLaneTopic())
				d.ten(stored)()
				subject := subjectOf(d.shards("app")[0])
				d.damaged(schemas.StreamShards, hard, flip(t, subject, 5))
				rep, err := d.proof("")
				// A cut between two batches that were not stored leaves nothing to name: what
				// is gone waits in EVENTS.
				waits := err == nil && hard && !stored && rep.Accepted == 10 && rep.Pending == 10
				if err != nil || rep.OK() && !waits {
					t.Errorf("verify finds nothing: %+v, %v", rep, err)
				} else {
					t.Logf("verify: %s", strings.Join(rep.Problems, "\n"))
				}
				d.carryOut(d.plan())
				d.router()
				d.sink()
				d.say(d.producer("app"), 5)
				d.stored("app", 15, 30*time.Second)
				d.repaired(15)
				if n := d.count("SELECT uniqExact(id) FROM %s", d.table("app")); n != 15 {
					t.Errorf("%d events, want 15", n)
				}
			})
		}
	}
}

// SHARDS is cut inside a shard that was left since, and what came later is gone:
// to route the lost frames again would put them into another shard beside the one
// in which ClickHouse has them. A router that runs throughout does not, though every
// repair is killed between its steps; nor when the router died before it sealed the
// shard that it had left.
func TestShardsCutBelowARotation(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} {
		for _, sealed := range []bool{false, true} {
			t.Run(fmt.Sprintf("stored %v sealed %v", stored, sealed), func(t *testing.T) {
				t.Parallel()
				topic := oneLaneTopic()
				topic.Rotate = schemas.Rotation{Rows: 4}
				d := startOnDisk(t, topic)
				stop := d.ten(stored, func(c *sinkConfig) { c.Housekeeping = time.Hour }) // closes nothing
				second := d.shards("app")[1]
				eventually(t, 20*time.Second, func() (err error) {
					if second, err = d.reg.Shard(t.Context(), second.Ref()); err == nil && second.Status != registry.Sealed {
						err = fmt.Errorf("%s is %s", second.Name(), second.Status)
					}
					return err
				})
				stop()
				if !sealed {
					d.unseal(second)
				}
				d.damaged(schemas.StreamShards, true, flip(t, subjectOf(second), 2))
				var seen faults
				d.router(func(c *router.Config) { c.Hooks.Fault = func(_, _ string, err error) { seen.add(err) } })
				eventually(t, 20*time.Second, func() error { return seen.has(router.ErrRolledBack) })
				d.killed()
				d.sink()
				d.say(d.producer("app"), 5)
				d.stored("app", 15, 30*time.Second)
				d.closed("app", 30*time.Second)
				d.repaired(15)
				if n := d.count("SELECT uniqExact(id) FROM %s", d.table("app")); n != 15 {
					t.Errorf("%d events, want 15", n)
				}
			})
		}
	}
}

// unseal makes a sealed shard what it was before: left by a rotation.
func (d *onDisk) unseal(s registry.Shard) {
	d.t.Helper()
	d.edit(s, func(s *registry.Shard) { s.Status, s.SealedAt = registry.Active, 0 })
	h, err := d.reg.Head(d.t.Context(), s.Topic, s.Month)
	if err != nil {
		d.t.Fatal(err)
	}
	if h.Retired == nil {
		h.Retired = map[schemas.Shard]int{}
	}
	h.Retired[s.ID] = s.ID.Lane()
	if err := d.reg.RestoreHead(d.t.Context(), nil, h); err != nil {
		d.t.Fatal(err)
	}
}

// A block of SHARDS loses its end, checkpoint and all.
func TestTruncatedShards(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} {
		t.Run(fmt.Sprintf("stored %v", stored), func(t *testing.T) {
			t.Parallel()
			d := startOnDisk(t, oneLaneTopic())
			d.ten(stored)()
			d.damaged(schemas.StreamShards, true, func(block []byte) []byte { return block[:len(block)/2] })
			d.carryOut(d.plan())
			d.router()
			d.sink()
			d.say(d.producer("app"), 5)
			d.stored("app", 15, 30*time.Second)
			if n := d.count("SELECT uniqExact(id) FROM %s", d.table("app")); n != 15 {
				t.Errorf("%d events, want 15", n)
			}
			if p := d.plan(); slices.ContainsFunc(p.Actions, func(a repair.Action) bool { return a.Do == repair.Lost }) {
				t.Errorf("something is called lost: %+v", p.Actions)
			}
		})
	}
}

// A byte of EVENTS flips in a message that was not routed yet: that message is
// gone, the router says so, and verify goes on saying so.
func TestFlippedByteInEvents(t *testing.T) {
	t.Parallel()
	d := startOnDisk(t, oneLaneTopic())
	p := d.producer("app")
	d.say(p, 10)
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.damaged(schemas.StreamEvents, false, flip(t, schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), 0), 5))
	d.router()
	d.sink()
	d.stored("app", 9, 30*time.Second)
	eventually(t, 20*time.Second, func() error {
		rep, err := d.proof("")
		if err != nil {
			return err
		}
		if rep.OK() || !strings.Contains(strings.Join(rep.Problems, "\n"), "could not be read") {
			return fmt.Errorf("verify does not name it: %v", rep.Problems)
		}
		return nil
	})
}
