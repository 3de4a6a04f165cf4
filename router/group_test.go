package router

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// groupTest is a group on a NATS of its own, whose batches wait until they are let go.
type groupTest struct {
	*testing.T
	ctx    context.Context
	shards jetstream.Stream
	group  *group

	mu      sync.Mutex
	batches []string // lanes, messages, error of each
}

func newGroupTest(t *testing.T) *groupTest {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	nc := embeddedtest.Start(t, embeddedtest.WithoutClickHouse()).NC()
	if _, err := registry.Setup(ctx, nc, schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	g := &groupTest{T: t, ctx: ctx}
	if g.shards, err = js.Stream(ctx, schemas.StreamShards); err != nil {
		t.Fatal(err)
	}
	cfg := (&Config{Linger: time.Nanosecond, Hooks: Hooks{Committed: func(lanes, messages int, err error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.batches = append(g.batches, fmt.Sprintf("%d lanes, %d messages, refused %t", lanes, messages, err != nil))
	}}}).withDefaults()
	g.group = newGroup(js, &cfg)
	g.group.bound = func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	g.hold()
	return g
}

// hold keeps batches from being published, and letGo lets those go that wait.
func (g *groupTest) hold() {
	for range maxGroups {
		g.group.queue <- struct{}{}
	}
}

func (g *groupTest) letGo() {
	for range maxGroups {
		<-g.group.queue
	}

}

// result is what a lane is told.
type result struct {
	last uint64
	err  error
}

// add has a lane commit so many frames and its checkpoint, which is expected to be at a
// sequence, and returns once it waits in a round.
func (g *groupTest) add(ctx context.Context, lane string, frames int, expected uint64) <-chan result {
	g.Helper()
	var msgs []*nats.Msg
	for i := range frames {
		m := nats.NewMsg(schemas.ShardSubject("app", 202611, schemas.Shard(lane[0])))
		m.Data = []byte(lane + strconv.Itoa(i))
		msgs = append(msgs, m)
	}
	ck := nats.NewMsg(schemas.RoutedSubject("app", lane))
	ck.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(expected, 10))
	msgs = append(msgs, ck)
	told := make(chan result, 1)
	joined := g.joined()
	go func() {
		last, _, err := g.group.commit(ctx, msgs, 100*frames)
		told <- result{last, err}
	}()

	embeddedtest.Eventually(g, time.Minute, func() error {
		if n := g.joined(); n != joined+1 && (n != 1 || joined < 2) { // 1: the round was full
			return fmt.Errorf("%d parts wait in the round", n)
		}
		return nil
	})
	return told
}

func (g *groupTest) joined() int {
	g.group.mu.Lock()
	defer g.group.mu.Unlock()
	if g.group.open == nil {
		return 0
	}
	return len(g.group.open.parts)
}

// stored expects a part of so many messages to end at a sequence of SHARDS, in one run.
func (g *groupTest) stored(lane string, frames int, r result) {
	g.Helper()
	if r.err != nil {
		g.Fatalf("lane %s: %v", lane, r.err)
	}
	for i := range frames + 1 {
		m, err := g.shards.GetMsg(g.ctx, r.last-uint64(frames-i))
		if err != nil {
			g.Fatal(err)
		}
		want := schemas.RoutedSubject("app", lane)
		if i < frames {
			want = schemas.ShardSubject("app", 202611, schemas.Shard(lane[0]))
		}
		if m.Subject != want || i < frames && string(m.Data) != lane+strconv.Itoa(i) {
			g.Errorf("message %d of lane %s is %s %q", i, lane, m.Subject, m.Data)
		}
	}
}

func (g *groupTest) messages(want uint64) {
	g.Helper()
	if info, err := g.shards.Info(g.ctx); err != nil || info.State.Msgs != want {
		g.Errorf("%d messages in SHARDS, %v; want %d", info.State.Msgs, err, want)
	}
}

func (g *groupTest) published(want ...string) {
	g.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if fmt.Sprint(g.batches) != fmt.Sprint(want) {
		g.Errorf("published %q, want %q", g.batches, want)
	}
}

func TestGroupCommitsLanesTogether(t *testing.T) {
	g := newGroupTest(t)
	a, b, c := g.add(g.ctx, "1", 3, 0), g.add(g.ctx, "2", 0, 0), g.add(g.ctx, "3", 2, 0)
	g.letGo()
	g.stored("1", 3, <-a)
	g.stored("2", 0, <-b)
	last := <-c
	g.stored("3", 2, last)
	g.messages(8)
	g.published("3 lanes, 8 messages, refused false")

	g.hold() // and the next one, behind the sequences just learned
	c = g.add(g.ctx, "3", 1, last.last)
	g.letGo()
	g.stored("3", 1, <-c)
}

// A lane that lost its race does not take the others with it, and nothing of its own is
// stored.
func TestGroupOfALostLane(t *testing.T) {
	g := newGroupTest(t)
	a, b, c := g.add(g.ctx, "1", 3, 0), g.add(g.ctx, "2", 2, 77), g.add(g.ctx, "3", 0, 0)
	g.letGo()
	g.stored("1", 3, <-a)
	if r := <-b; !errors.Is(r.err, ErrLostLane) {
		t.Errorf("the lane that lost is told %v, want %v", r.err, ErrLostLane)
	}
	g.stored("3", 0, <-c)
	g.messages(5)
	g.published("1 lanes, 4 messages, refused false", "1 lanes, 3 messages, refused true", "1 lanes, 1 messages, refused false")
}

// A run of a lane that was told to stop and the next one may meet in a group: one wins.
func TestGroupOfTwoRunsOfALane(t *testing.T) {
	g := newGroupTest(t)
	a, b := g.add(g.ctx, "1", 3, 0), g.add(g.ctx, "1", 3, 0)
	g.letGo()
	g.stored("1", 3, <-a)
	if r := <-b; !errors.Is(r.err, ErrLostLane) {
		t.Errorf("the second run is told %v, want %v", r.err, ErrLostLane)
	}
	g.messages(4)
}

// The lane that publishes for others does so when it is stopped itself.
func TestGroupOfALaneThatStops(t *testing.T) {
	g := newGroupTest(t)
	ctx, stop := context.WithCancel(g.ctx)
	a, b := g.add(ctx, "1", 1, 0), g.add(g.ctx, "2", 1, 0)
	stop()
	g.letGo()
	<-a // of either: it may be told of its commit or of its end
	g.stored("2", 1, <-b)
	g.messages(4)
	g.published("2 lanes, 4 messages, refused false")
}

// No group has more messages or bytes than a batch may, and no part is cut.
func TestGroupIsBounded(t *testing.T) {
	g := newGroupTest(t)
	const lanes, frames = 7, 120 // 121 messages, four of which go into 500
	var told []<-chan result
	for lane := range lanes {
		told = append(told, g.add(g.ctx, strconv.Itoa(lane), frames, 0))
	}
	g.letGo()
	for lane, r := range told {
		g.stored(strconv.Itoa(lane), frames, <-r)
	}
	g.messages(lanes * (frames + 1))
	if len(g.batches) != 2 {
		t.Errorf("published %q, want two groups", g.batches)
	}
	r := &round{messages: 10, bytes: 100}
	for _, c := range []struct {
		messages, bytes int
		want            bool
	}{{10, 100, true}, {11, 100, false}, {10, 101, false}} {
		if got := r.takes(&part{msgs: make([]*nats.Msg, c.messages), bytes: c.bytes}, 20, 200); got != c.want {
			t.Errorf("%d messages of %d bytes more: %t, want %t", c.messages, c.bytes, got, c.want)
		}
	}
}

// After an outage no lane waits for a group's answer.
func TestGroupEndsWithTheConnection(t *testing.T) {
	g := newGroupTest(t)
	bound, lose := context.WithCancelCause(g.ctx)
	g.group.bound = func() (context.Context, context.CancelFunc) { return bound, func() {} }
	a, b := g.add(g.ctx, "1", 1, 0), g.add(g.ctx, "2", 1, 0)
	gone := errors.New("gone")
	lose(gone)
	for lane, told := range []<-chan result{a, b} {
		if r := <-told; !errors.Is(r.err, gone) {
			t.Errorf("lane %d is told %v, want %v", lane, r.err, gone)
		}
	}
	g.messages(0)
}
