package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// A bit flips at a third of EVENTS, and NATS restarts: the stream is cut there and
// gives its sequences again. Everything that was routed stays, everything that was
// accepted since is routed, once, by the router itself; verify does not call it
// proven before, and repair loses nothing.
func TestEventsCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		running      bool // the router is there when the stream gives its sequences again
		frames, bare int  // before the cut
		again        int  // of each kind, since: fewer than the checkpoint's sequence, or more
	}{
		{"fewer since, router away", false, 120, 0, 20},
		{"more since, router away", false, 60, 0, 90},
		{"bare JSON, fewer since", false, 0, 90, 25},
		{"bare JSON and frames, more since", false, 45, 45, 70},
		{"router throughout", true, 60, 30, 30},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			topic := newTopic("app")
			topic.Lanes = 2
			d := startOnDisk(t, topic)
			stopRouter, stopSink := d.router(), d.sink()
			d.both(c.frames, c.bare, "before")
			n := uint64(c.frames + c.bare)
			d.stored("app", n, 30*time.Second)
			d.verify(n)
			if !c.running {
				stopRouter()
				stopSink()
			}
			d.cut(schemas.StreamEvents)
			if c.running { // their connections are to the server that was stopped
				stopRouter()
				stopSink()
				d.router()
				d.sink()
			}
			if !c.running {
				d.named("the checkpoint")
			}
			kinds := 0
			for _, k := range []int{c.frames, c.bare} {
				if k > 0 {
					kinds++
				}
			}
			f, b := min(c.frames, 1)*c.again, min(c.bare, 1)*c.again
			d.both(f, b, "since")
			n += uint64(kinds * c.again)
			if !c.running {
				rep, err := d.proof("")
				if err != nil || rep.OK() {
					t.Errorf("verify calls it proven: %+v, %v", rep, err)
				}
				d.router()
				d.sink()
			}
			d.stored("app", n, 30*time.Second)
			eventually(t, 10*time.Second, func() error {
				rep, err := d.proof("")
				if err != nil || !rep.OK() || rep.Accepted != n || rep.Pending != 0 {
					err = errors.Join(err, fmt.Errorf("%+v", rep))
				}
				return err
			})
			d.repaired(n)
			d.whole("app", n)
			// The janitor purges by what was routed; sequences that were given again are not it.
			d.both(min(c.frames, 1)*10, min(c.bare, 1)*10, "later")
			d.stored("app", n+uint64(kinds*10), 30*time.Second)
			d.repaired(n + uint64(kinds*10))
		})
	}
}

// both publishes frames of one event each and bare JSON, over the lanes.
func (e *env) both(frames, bare int, mark string) {
	e.t.Helper()
	if frames > 0 {
		p := e.producer("app")
		for i := range frames {
			if err := p.Publish(e.t.Context(), producer.Event{Message: fmt.Sprint(mark, i), UserID: fmt.Sprint(i)}); err != nil {
				e.t.Fatal(err)
			}
		}
		if err := p.Close(e.t.Context()); err != nil {
			e.t.Fatal(err)
		}
	}
	for i := range bare {
		data, _ := json.Marshal(map[string]any{"message": fmt.Sprint(mark, i)})
		e.publish(schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), i%2), string(data))
	}
}

// Where the chain does not prove what was routed, because what came of the messages
// left SHARDS, the router waits and a repair decides by what is stored.
func TestEventsCutWithoutTraces(t *testing.T) {
	t.Parallel()
	d := startOnDisk(t, oneLaneTopic())
	stopRouter, stopSink := d.router(), d.sink()
	subject := schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), 0)
	for i := range 30 {
		d.publish(subject, fmt.Sprintf(`{"message":"%d"}`, i))
	}
	d.stored("app", 30, 30*time.Second)
	stopRouter()
	stopSink()
	if err := d.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(schemas.ShardsFilter("app")), jetstream.WithPurgeKeep(1)); err != nil {
		t.Fatal(err)
	}
	d.cut(schemas.StreamEvents)
	for i := range 12 {
		d.publish(subject, fmt.Sprintf(`{"message":"since %d"}`, i))
	}
	var seen faults
	d.router(func(c *router.Config) { c.Hooks.Fault = func(_, _ string, err error) { seen.add(err) } })
	d.sink()
	eventually(t, 20*time.Second, func() error { return seen.has(router.ErrRolledBack) })
	if rep, err := d.proof(""); err != nil || rep.OK() {
		t.Errorf("verify calls it proven: %+v, %v", rep, err)
	}
	if p := d.plan(); !does(p, repair.RestoreCheckpoint) {
		t.Errorf("the checkpoint is not restored: %+v", p.Actions)
	}
	d.killed()
	d.stored("app", 42, 30*time.Second)
	d.repaired(42)
	if n := d.count("SELECT uniqExact(message) FROM %s", d.table("app")); n != 42 {
		t.Errorf("%d events, want 42", n)
	}
}

// What had been accepted and not routed when EVENTS lost its end is gone. Another
// lane's checkpoint knows that its sequences had been given, so that verify names
// them, and goes on doing so.
func TestEventsCutBeforeRouting(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes = 2
	d := startOnDisk(t, topic)
	month := schemas.MonthOf(time.Now().UnixNano())
	publish := func(lane int, n int, mark string) {
		for i := range n {
			d.publish(schemas.EventsSubject("app", month, lane), fmt.Sprintf(`{"message":"%s %d %s"}`, mark, i, strings.Repeat("x", 200)))
		}
	}
	stopRouter, stopSink := d.router(), d.sink()
	publish(0, 10, "a")
	publish(1, 10, "a")
	d.stored("app", 20, 30*time.Second)
	stopRouter()
	stopSink()
	// The lane waits for a repair: a router wrote it, as it seems, so none takes it out.
	last := d.messages(schemas.StreamShards, schemas.RoutedSubject("app", "1"))
	odd, err := d.js().Publish(t.Context(), schemas.RoutedSubject("app", "1"), []byte("no checkpoint"), jetstream.WithExpectLastSequencePerSubject(last[len(last)-1].Sequence))
	if err != nil {
		t.Fatal(err)
	}
	publish(1, 6, "lost") // 21 to 26
	publish(0, 4, "kept") // 27 to 30
	stopRouter = d.router()
	eventually(t, 20*time.Second, func() error {
		if n := len(d.messages(schemas.StreamShards, schemas.ShardsFilter("app"))); n != 24 {
			return fmt.Errorf("%d frames", n)
		}
		return nil
	})
	stopRouter()
	if err := d.shardsStream().DeleteMsg(t.Context(), odd.Sequence); err != nil {
		t.Fatal(err)
	}
	d.damaged(schemas.StreamEvents, true, func(block []byte) []byte {
		at := bytes.Index(block, []byte("lost 2"))
		block[at+20] ^= 4
		return block
	})
	if last := d.stream(schemas.StreamEvents).LastSeq; last != 22 {
		t.Fatalf("EVENTS ends at %d, want 22", last)
	}
	publish(0, 5, "since")
	publish(1, 5, "since")
	d.router()
	d.sink()
	d.stored("app", 20+2+4+10, 30*time.Second)
	for range 2 {
		d.named("messages 23 to 26")
		d.carryOut(d.plan())
	}
	rep, err := d.proof("app")
	if err != nil || rep.OK() || rep.Missing != 0 || rep.Doubled != 0 || rep.Pending != 0 {
		t.Errorf("%+v, %v", rep, err)
	}
	d.whole("app", 36)
	if p := d.plan(); slices.ContainsFunc(p.Actions, func(a repair.Action) bool { return a.Do != repair.Lost }) {
		t.Errorf("there is still something to do: %+v", p.Actions)
	}
}

// What the purge of an erasure took from SHARDS had been routed, so a cut of EVENTS does not lose it. Messages of
// another topic that came in between, and had not been routed, are named, and none beside them.
func TestEventsCutAroundAPurge(t *testing.T) {
	t.Parallel()
	app, other := oneLaneTopic(), newTopic("other")
	other.Lanes = 1
	d := startOnDisk(t, app, other)
	month := schemas.MonthOf(time.Now().UnixNano())
	publish := func(topic string, n int, mark string) {
		for i := range n {
			d.publish(schemas.EventsSubject(topic, month, 0), fmt.Sprintf(`{"message":"%s %d","user_id":"%s"}`, mark, i, mark))
		}
	}
	stopRouter, stopSink := d.router(), d.sink()
	publish("app", 10, "a")
	publish("other", 1, "o")
	d.stored("app", 10, 30*time.Second)
	d.stored("other", 1, 30*time.Second)
	stopRouter()
	last := d.messages(schemas.StreamShards, schemas.RoutedSubject("other", "0"))
	odd, err := d.js().Publish(t.Context(), schemas.RoutedSubject("other", "0"), []byte("no checkpoint"), jetstream.WithExpectLastSequencePerSubject(last[len(last)-1].Sequence))
	if err != nil {
		t.Fatal(err)
	}
	stopRouter = d.router()
	publish("app", 2, "u-7")    // 12 and 13
	publish("other", 3, "lost") // 14 to 16
	publish("app", 1, "after")  // 17
	d.stored("app", 13, 30*time.Second)
	x := d.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"u-7"}})
	if err == nil {
		job, err = x.Run(t.Context(), "app", job.ID)
	}
	if err == nil {
		job, err = x.Purge(t.Context(), "app", job.ID)
	}
	if err != nil || job.Purged.Frames != 2 || job.Purged.Events != 2 {
		t.Fatalf("%+v, %v", job, err)
	}
	stopRouter()
	stopSink()
	if err := d.shardsStream().DeleteMsg(t.Context(), odd.Sequence); err != nil {
		t.Fatal(err)
	}
	d.damaged(schemas.StreamEvents, true, func(block []byte) []byte {
		block[bytes.Index(block, []byte("a 9"))] ^= 4
		return block
	})
	if end := d.stream(schemas.StreamEvents).LastSeq; end != 9 {
		t.Fatalf("EVENTS ends at %d, want 9", end)
	}
	publish("app", 5, "since")
	d.router()
	d.sink()
	d.stored("app", 11+5, 30*time.Second)
	eventually(t, 20*time.Second, func() error {
		for topic, want := range map[string]uint64{"app": 3, "other": 0} { // other was routed up to 11
			cps, err := streams.Checkpoints(t.Context(), d.js(), topic)
			if err != nil || len(cps["0"].Cuts) != 1 || cps["0"].Cuts[0].Messages != want {
				return fmt.Errorf("%s: %+v (%w), expected a cut that took %d messages", topic, cps["0"].Cuts, err, want)
			}
		}
		rep, err := d.proof("")
		if err == nil && (len(rep.Problems) != 1 || !strings.Contains(rep.Problems[0], "messages 14 to 16")) {
			err = fmt.Errorf("verify says %q, expected messages 14 to 16 alone", rep.Problems)
		}
		return err
	})
}
