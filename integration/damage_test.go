package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

// faults keeps the errors the parts reported.
type faults struct {
	mu   sync.Mutex
	list []error
}

func (f *faults) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, err)
}

func (f *faults) has(want error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range f.list {
		if errors.Is(err, want) {
			return nil
		}
	}
	return errors.Join(append([]error{fmt.Errorf("this was not reported: %w; but", want)}, f.list...)...)
}

func oneLaneTopic() schemas.Topic {
	t := newTopic("app")
	t.Lanes = 1
	return t
}

// SHARDS loses its end, checkpoint and all, after the sink stored it and the
// janitor purged EVENTS: the router would route the rest under positions that
// were given already. It must stop and say so, and so must verify.
func TestShardsRolledBack(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	var seen faults
	slow := func(c *sinkConfig) { c.Housekeeping = time.Hour }
	tell := func(c *router.Config) { c.Hooks.Fault = func(_, _ string, err error) { seen.add(err) } }
	stopRouter, stopSink := e.router(tell), e.sink(slow)
	p := e.producer("app")
	publish := func(n int) {
		t.Helper()
		for range n {
			if err := p.Publish(t.Context(), producer.Event{Message: "x", UserID: "u"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(5)
	e.stored("app", 5, 30*time.Second)
	shards, err := e.js().Stream(t.Context(), schemas.StreamShards)
	if err != nil {
		t.Fatal(err)
	}
	last := func() uint64 {
		info, err := shards.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.State.LastSeq
	}
	cut := last()
	publish(5)
	e.stored("app", 10, 30*time.Second)
	stopRouter()
	stopSink()
	for seq := cut + 1; seq <= last(); seq++ {
		if err := shards.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	events, err := e.js().Stream(t.Context(), schemas.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if err := events.Purge(t.Context(), jetstream.WithPurgeSubject(schemas.LaneFilter("app", "0")), jetstream.WithPurgeSequence(10)); err != nil {
		t.Fatal(err)
	}
	e.router(tell)
	e.sink(slow)
	publish(5)
	eventually(t, 30*time.Second, func() error { return seen.has(router.ErrRolledBack) })
	rep, err := e.proof("")
	if err != nil || rep.OK() {
		t.Errorf("verify finds nothing wrong: %+v, %v", rep, err)
	}
}

// SHARDS is restored to an older end while a sink lives, and its positions are
// given again to other frames: the sink notices that they do not follow.
func TestShardForked(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	var seen faults
	tell := func(c *sinkConfig) {
		c.Housekeeping = time.Hour
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) { seen.add(err) }
	}
	stopRouter, stopSink := e.router(), e.sink(tell)
	p := e.producer("app")
	for range 3 {
		if err := p.Publish(t.Context(), producer.Event{Message: "x", UserID: "u"}); err != nil {
			t.Fatal(err)
		}
	}
	e.stored("app", 3, 30*time.Second)
	// Another person's erasure, which covers the frame, excuses nothing.
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"v"}})
	if err == nil {
		_, err = x.Run(t.Context(), "app", job.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	stopRouter()
	stopSink()
	// The shard's last frame is replaced by another under its position.
	shards, err := e.js().Stream(t.Context(), schemas.StreamShards)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := e.reg.Shards(t.Context(), "app", 0)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	subject := schemas.ShardSubject("app", entries[0].Month, entries[0].ID)
	last, err := shards.GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	placed, err := schemas.ParsePlaced(last.Header)
	if err != nil {
		t.Fatal(err)
	}
	if err := shards.DeleteMsg(t.Context(), last.Sequence); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second makes the shard behind
		f, payload := frameOf(t, oneLaneTopic(), producer.Event{Time: time.Now(), Message: "another"})
		f.Producer, f.Seq = "x", placed.Pos
		placed.Frame = f
		e.place(t, subject, placed, payload)
		placed.Pos++
		placed.ShardRows++
		placed.Prev = schemas.Digest(payload)
	}
	e.sink(tell)
	eventually(t, 30*time.Second, func() error { return seen.has(sinks.ErrForked) })
	if rep, err := e.proof(""); err != nil || rep.OK() {
		t.Errorf("verify finds nothing wrong: %+v, %v", rep, err)
	}
}

// A message in SHARDS that is not a frame harms nothing: frames are stored, events
// are found, and the message is kept as a dead letter.
func TestNoFrameInShards(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	js := e.js()
	for _, subject := range []string{"shards.x.y.z", "shards.app.2026-02.zzz", "shards.app.2026-02.00000000000000aa", "routed.zzz.0", "routed.app.zzz"} {
		if _, err := js.Publish(t.Context(), subject, []byte("hi")); err != nil {
			t.Fatal(err)
		}
	}
	e.router()
	e.sink()
	p := e.producer("app")
	for i := range 100 {
		p.Log(producer.Event{UserID: fmt.Sprint(i)})
	}
	e.flush(p)
	e.stored("app", 100, 30*time.Second)
	if _, err := e.reader().Shards(t.Context(), "", ""); err != nil {
		t.Error(err)
	}
	if page, err := e.reader().Query(t.Context(), query.Request{Topic: "app"}); err != nil || len(page.Events) != 100 {
		t.Errorf("%d events are found, want 100 (%v)", len(page.Events), err)
	}
	eventually(t, 30*time.Second, func() error {
		rep, err := e.proof("")
		if err == nil && (!rep.OK() || rep.Stored != 100 || rep.Dead != 5) {
			err = fmt.Errorf("verify: %+v; want 100 stored and 5 dead", rep)
		}
		return err
	})
}

// A SHARDS that fills up with what is stored long since makes room, long before
// the replay window is over.
func TestPressedShardsFreeSpace(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	s, err := e.js().Stream(t.Context(), schemas.StreamShards)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.MaxBytes = 2 << 20
	if _, err := e.js().UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	e.router(func(c *router.Config) { c.MaxBatchBytes = 256 << 10 })
	e.sink()
	p := e.producer("app")
	noise := make([]byte, 40_000)
	const n = 120 // 4.8 MB that do not compress
	for range n {
		for i := range noise {
			noise[i] = byte(' ' + rand.N(94))
		}
		if err := p.Publish(t.Context(), producer.Event{Message: string(noise), UserID: "u"}); err != nil {
			t.Fatal(err)
		}
	}
	e.stored("app", n, 60*time.Second)
	e.verify(n)
}

// place publishes a frame into a shard, past the router.
func (e *env) place(t *testing.T, subject string, p schemas.Placed, payload []byte) {
	t.Helper()
	msg := nats.NewMsg(subject)
	p.SetHeaders(msg.Header)
	msg.Data = payload
	if _, err := e.js().PublishMsg(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
}
