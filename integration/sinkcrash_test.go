package integration

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// burn makes ClickHouse remember the token of the insert that follows head 0 of a
// shard, and holds nothing of it: as after a crash between the two.
func (e *env) burn(topic *schemas.Topic, shard schemas.Shard, attempt int, frames ...[]byte) {
	e.t.Helper()
	in := &tables.Insert{Topic: topic, Schema: 1, Month: 202602, Shard: shard, Attempt: attempt}
	for _, payload := range frames {
		in.Frames = append(in.Frames, tables.Frame{Rows: 1, Payload: payload})
	}
	err := e.db.Insert(e.t.Context(), in)
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.hand.Conn().Exec(e.t.Context(), fmt.Sprintf("DELETE FROM %s WHERE shard = %d AND pos = 0", e.table(topic.Name), uint64(shard))); err != nil {
		e.t.Fatal(err)
	}
	if got := e.count("SELECT count() FROM %s WHERE shard = %d", e.table(topic.Name), uint64(shard)); got != 0 {
		e.t.Fatalf("%d rows of the burnt insert are left", got)
	}
}

// A token that a crash burnt hides no rows: the sinks find the head not moved and
// take the next token, alone and when two do it at once.
func TestBurntTokens(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d sinks", n), func(t *testing.T) {
			t.Parallel()
			topic, err := oneLane("app", 0).Declared()
			if err != nil {
				t.Fatal(err)
			}
			e, alone := startAlone(t, topic)
			if err := e.db.Ensure(t.Context(), &topic); err != nil {
				t.Fatal(err)
			}
			e.router()
			const burnt = 3
			p := e.producer("app", wholeFrames) // one frame: a token is of so many blocks
			for i := range 10 {
				p.Log(producer.Event{Time: feb(i, 10), Message: fmt.Sprint(i)})
			}
			e.flush(p)
			e.routed("app", 10)
			shard := e.shards("app")[0]
			// The token is that of an insert of one frame; what is in it does not matter.
			_, other := frameOf(t, topic, producer.Event{Time: feb(1, 2), Message: "never seen"})
			for attempt := range burnt {
				e.burn(&topic, shard.ID, attempt, other)
			}
			var found atomic.Int64
			for range n {
				e.sinkOn(e.connectTo(alone), func(c *sinkConfig) {
					c.Hooks.Burnt = func(schemas.ShardRef, uint64, int) { found.Add(1) }
				})
			}
			e.stored("app", 10, 30*time.Second)
			if found.Load() < burnt {
				t.Errorf("%d burnt tokens were found, want %d or more", found.Load(), burnt)
			}
			e.whole("app", 10)
			e.verify(10)
		})
	}
}

// ClickHouse is killed again and again in the middle of inserts by two sinks: no
// event is lost and none is stored twice.
func TestClickHouseKilled(t *testing.T) {
	t.Parallel()
	engine, err := embedded.NewClickHouse(embedded.ClickHouseConfig{Engine: embeddedtest.FindEngine(t), Dir: filepath.Join(t.TempDir(), "clickhouse")})
	if err != nil {
		t.Fatal(err)
	}
	embeddedtest.Run(t, engine)
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	srv.Engine, srv.ClickHouseHTTP, srv.User, srv.Password, srv.Database = engine, engine.HTTPURL(), engine.User(), engine.Password(), engine.Database()
	topic := newTopic("app")
	topic.Lanes, topic.Rotate = 2, schemas.Rotation{Rows: 3000}
	e := setUp(t, srv, topic)
	e.router()

	const kills = 4
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var kill atomic.Bool
	killed := make(chan struct{}, 1)
	for i := range 2 {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		e.sink(func(c *sinkConfig) {
			c.Inserts, c.Linger, c.InsertTimeout = 1, 20*time.Millisecond, 10*time.Second
			c.Hooks.Fault = nil
			c.Crash = func(point string) {
				if point != "sink.before-insert" || !kill.CompareAndSwap(true, false) {
					return
				}
				pid := engine.PID()
				time.AfterFunc(time.Duration(rnd.IntN(40))*time.Millisecond, func() {
					if pid > 0 {
						_ = syscall.Kill(pid, syscall.SIGKILL)
					}
					killed <- struct{}{}
				})
			}
		})
	}
	p := e.producer("app")
	n := 0
	for range kills {
		eventually(t, time.Minute, func() error { return engine.Healthy(t.Context()) })
		before := engine.PID()
		kill.Store(true)
		for waiting := true; waiting; {
			for range 200 {
				p.Log(producer.Event{Time: feb(n%1000, 1000), UserID: fmt.Sprintf("u-%d", n%50), Message: fmt.Sprint(n)})
				n++
			}
			e.flush(p)
			select {
			case <-killed:
				waiting = false
			case <-time.After(50 * time.Millisecond):
			}
		}
		eventually(t, time.Minute, func() error {
			if now := engine.PID(); now == before || now == 0 {
				return fmt.Errorf("the engine's process is %d, was %d", now, before)
			}
			return nil
		})
	}
	e.stored("app", uint64(n), time.Minute)
	if got := e.count("SELECT uniqExact(message) FROM %s", e.table("app")); got != uint64(n) {
		t.Errorf("%d distinct messages, want %d", got, n)
	}
	t.Logf("%d events, %d kills", n, kills)
	e.closed("app", 30*time.Second)
	e.whole("app", uint64(n))
	e.verify(uint64(n))
}
