package integration

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/wire"
)

// junk publishes what is not Almanac's on a subject of its streams.
func (e *env) junk(subject string, data []byte, headers ...string) {
	e.t.Helper()
	m := nats.NewMsg(subject)
	m.Data = data
	for i := 0; i+1 < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	if _, err := e.js().PublishMsg(e.t.Context(), m); err != nil {
		e.t.Fatalf("%q: %v", subject, err)
	}
}

// foreign waits for n dead letters of what is not Almanac's.
func (e *env) foreign(n int) (subjects map[string]int) {
	e.t.Helper()
	eventually(e.t, 60*time.Second, func() error {
		letters, err := e.reader().Dead(e.t.Context(), schemas.NoTopic, 1000)
		subjects = map[string]int{}
		found := 0
		for _, l := range letters {
			if l.Reason == wire.ReasonForeign {
				subjects[l.Subject]++
				found++
			}
		}
		if err == nil && found != n {
			err = fmt.Errorf("%d letters, want %d: %v", found, n, subjects)
		}
		return err
	})
	return subjects
}

// Junk on every kind of subject that NATS takes for a stream of Almanac's is kept as a dead letter, named and
// taken out. No lane stops for longer than that, and verify proves.
func TestForeignMessagesAreSetAside(t *testing.T) {
	t.Parallel()
	docs := newTopic("customers")
	docs.Kind, docs.LaneBy = "document", nil
	e := running(t, oneLaneTopic(), docs)
	p := e.producer("app")
	e.say(p, 20)
	e.stored("app", 20, 60*time.Second)
	active := e.shards("app")[0].Ref().Subject()
	subjects := []string{
		active, active, active, "shards.app.2026-11.x", "shards.app.x.0000000000000001", "shards.app.2026-11.00000000000000aa", "shards.nope.2026-11.x",
		"shards.nope.2026-11.00000000000000aa", "shards.app.2026-11.\x7f", "shards.*.2026-11.00000000000000aa", "routed.app.0", "routed.app.0", "routed.app.77", "routed.nope.0",
		"routed._.x", "routed._.SHARDS", "routed._.DOCS", "routed.app.\x7f", "dead.app", "dead.nope", "dead._", "dead.\x1b[5mx", "docs.nope.0.x", "docs.app.0.x", "docs.customers.99.x", "docs.customers.x.x",
		"docs.customers.0.\x7f", "doclocks.nope.0.x", "doclocks.customers.0.x", "timers.nope.0.g.0.x", "timers.timers.0.g.0.x", "timers.timers.99.g.0.x", "timers.timers.0.nogroup.x.x",
	}
	want := map[string]int{}
	for i, subject := range subjects {
		data := []byte("junk")
		if i%5 == 1 {
			data = nil
		}
		if strings.HasPrefix(subject, "routed.") { // as a checkpoint may be, but for its headers
			data = []byte([]string{`{}`, `null`, `{"source":99999999,"digest":"x","epoch":999999,"router":"evil"}`, "junk"}[i%4])
		}
		e.junk(subject, data)
		want[strings.ReplaceAll(subject, "\x1b", " ")]++
		if i%8 == 0 {
			e.say(p, 1)
		}
	}
	e.junk("dead.app", bytes.Repeat([]byte("x"), 900<<10), "Large", strings.Repeat("h", 60<<10))
	e.junk(active, []byte("junk"), schemas.HeaderPos, "21", schemas.HeaderRows, "many")
	want["dead.app"]++
	want[active]++
	n := len(subjects) + 2
	e.say(p, 20)
	e.stored("app", 45, 120*time.Second)
	got := e.foreign(n)
	for subject, times := range want {
		if got[subject] != times {
			t.Errorf("%q: %d letters, want %d", subject, got[subject], times)
		}
	}
	rep := e.verify(uint64(45 + n))
	if rep.Foreign != uint64(n) || rep.Dead != uint64(n) {
		t.Errorf("verify counts %d foreign messages and %d dead, want %d", rep.Foreign, rep.Dead, n)
	}
	nc := e.connect()
	d, err := deadletters.New(t.Context(), nc, e.registry(nc), nil, e.db)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Resolve(t.Context(), deadletters.Request{Topic: schemas.NoTopic, Reason: wire.ReasonForeign, Drop: true}, func(deadletters.Outcome) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if rep := e.verify(uint64(45 + n)); rep.Foreign != 0 || rep.Discarded != uint64(n) {
		t.Errorf("after they were dropped: %d foreign, %d discarded", rep.Foreign, rep.Discarded)
	}
}

// A router that ends after it kept a foreign message and before it took it out leaves that to the next: one letter.
func TestForeignMessageIsKeptOnce(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	var kept atomic.Bool
	stop := e.router(func(c *router.Config) {
		c.Crash = func(point string) {
			if point == "router.after-foreign" {
				kept.Store(true)
				runtime.Goexit() // of the sweep alone
			}
		}
	})
	e.junk("shards.app.2026-11.x", []byte("junk"))
	eventually(t, 60*time.Second, func() error {
		if !kept.Load() {
			return errors.New("the letter is not kept yet")
		}
		return nil
	})
	stop()
	e.router()
	e.sink()
	e.say(e.producer("app"), 3)
	e.stored("app", 3, 60*time.Second)
	e.foreign(1)
	e.resolved()
	e.verify(4)
}

// A sink that starts while junk lies above a shard's last frame, and no router runs, stores the frames.
func TestForeignMessageHidesNoFrame(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	stopRouter := e.router()
	e.say(e.producer("app"), 20)
	e.routed("app", 20)
	stopRouter()
	e.junk(e.shards("app")[0].Ref().Subject(), []byte("junk"))
	e.sink()
	e.stored("app", 20, 60*time.Second)
	e.router()
	e.foreign(1)
	e.verify(21)
}

// A frame with the headers of the next one, published by a client, is not told from a router's: its lane stops and
// says so, verify does not prove, and other topics go on. Accounts of NATS keep such a client away.
func TestForgedFrameStopsItsLaneAlone(t *testing.T) {
	t.Parallel()
	e := running(t, oneLaneTopic(), newTopic("other"))
	e.say(e.producer("app"), 5)
	e.stored("app", 5, 60*time.Second)
	s := e.shards("app")[0]
	f, payload := frameOf(t, oneLaneTopic(), producer.Event{Message: "forged"})
	forged := schemas.Placed{Frame: f, Pos: 99, SourceSeq: 999, ShardRows: 104, ShardBytes: 5000}
	m := nats.NewMsg(s.Ref().Subject())
	forged.SetHeaders(m.Header)
	m.Data = payload
	if _, err := e.js().PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	e.say(e.producer("other"), 5)
	e.stored("other", 5, 60*time.Second)
	if rep, err := e.proof(""); err != nil || rep.OK() {
		t.Errorf("verify proves: %+v, %v", rep, err)
	}
}
