package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// What is stored and old leaves the streams, but for the last message of every
// lane and shard; reading, proving and going on after a restart need no more.
func TestJanitor(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes, topic.Rotate = 2, schemas.Rotation{Rows: 500}
	e := start(t, topic)
	short := func(c *sinkConfig) {
		c.Retention.ReplayWindow, c.Retention.KeepTime = time.Second, retention.MinKeepTime
	}
	stopRouter, stopSink := e.router(), e.sink(short)
	p := e.producer("app")
	n := 0
	publish := func() {
		for range 20 { // many frames
			for range 100 {
				p.Log(producer.Event{Time: feb(n, 10_000), UserID: fmt.Sprintf("u-%d", n%50), Message: fmt.Sprint(n)})
				n++
			}
			e.flush(p)
		}
	}
	right := func(stage string) {
		t.Helper()
		e.verify(uint64(n) + 1)
		if all, _ := e.answer(e.reader(), query.Request{Topic: "app", Limit: 1000}); len(all) != n {
			t.Errorf("%s: all pages have %d events, want %d", stage, len(all), n)
		}
		if got := e.count("SELECT uniqExact(message) FROM %s", e.table("app")); got != uint64(n) {
			t.Errorf("%s: %d distinct messages are stored, want %d", stage, got, n)
		}
	}
	swept := func() {
		t.Helper()
		shards := e.closed("app", 20*time.Second)
		eventually(t, 30*time.Second, func() error {
			left := map[string]int{}
			for _, msg := range e.messages(schemas.StreamShards, ">") {
				left[msg.Subject]++
			}
			for subject, n := range left {
				if n != 1 {
					return fmt.Errorf("%d messages of %s are left, want its last", n, subject)
				}
			}
			for _, s := range shards {
				if left[schemas.ShardSubject("app", s.Month, s.ID)] != 1 {
					t.Fatalf("the last frame of %s is gone", s.Name())
				}
			}
			if left[schemas.DeadSubject("app")] != 1 {
				t.Fatal("the dead letter is gone")
			}
			if got := e.stream(schemas.StreamEvents).Msgs; got > 2 {
				return fmt.Errorf("%d messages of EVENTS are left, want one a lane", got)
			}
			return nil
		})
	}
	e.publish("events.app.2026-02.0", "no event")
	publish()
	e.stored("app", uint64(n), 30*time.Second)
	swept()
	right("swept")

	// All start again from what is left.
	stopRouter()
	stopSink()
	publish()
	stopRouter, stopSink = e.router(), e.sink(short)
	publish()
	e.stored("app", uint64(n), 30*time.Second)
	right("after a restart")
	swept()
	right("swept again")

	// And nothing is swept that is not stored.
	stopSink()
	publish()
	e.routed("app", uint64(n)+1)
	e.sink(short, func(c *sinkConfig) {
		c.Crash = func(point string) {
			if strings.HasPrefix(point, "sink.before") {
				<-t.Context().Done()
			}
		}
	})
	routed := e.stream(schemas.StreamShards).Msgs
	before := time.Now()
	eventually(t, 10*time.Second, func() error {
		if time.Since(before) < 3*time.Second {
			return fmt.Errorf("three windows have not passed")
		}
		return nil
	})
	frames := 0
	for _, s := range e.shards("app") {
		frames += len(e.messages(schemas.StreamShards, schemas.ShardSubject("app", s.Month, s.ID)))
	}
	if frames < 20 {
		t.Errorf("%d frames are left in SHARDS of %d messages, 20 and more are not stored", frames, routed)
	}
	if rep := e.verify(uint64(n) + 1); rep.Pending != 2000 {
		t.Errorf("%d events are pending, want 2000", rep.Pending)
	}
	stopRouter()
}
