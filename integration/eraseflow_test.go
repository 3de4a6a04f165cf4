package integration

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// Events keep flowing into a slow sink that is never done with the last second: an
// erasure waits for what came before it alone, not for what comes meanwhile.
func TestEraseWhileEventsFlow(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 100_000))
	e.router()
	e.sink(func(c *sinkConfig) {
		c.Crash = func(point string) {
			if point == "sink.before-insert" { // ClickHouse takes its time
				slow := time.NewTimer(1300 * time.Millisecond)
				defer slow.Stop()
				select {
				case <-slow.C:
				case <-t.Context().Done():
				}
			}
		}
	})
	p := e.producer("app")
	for i := range 20 {
		p.Log(producer.Event{Time: feb(i, 1000), UserID: "u-7"})
	}
	e.flush(p)
	over, wg := make(chan struct{}), sync.WaitGroup{}
	wg.Go(func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			case <-tick.C:
				p.Log(producer.Event{Time: feb(i%1000, 1000), UserID: "u-1"})
			}
		}
	})
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"u-7"}})
	if err == nil {
		job, err = x.Run(t.Context(), "app", job.ID)
	}
	close(over)
	wg.Wait()
	if err != nil || job.State != ledger.Erased || job.Rows != 20 {
		t.Fatalf("%+v, %v; want 20 rows erased", job, err)
	}
}

// All of a shard up to the fence goes, the user goes on, and SHARDS has let go of
// the frames from before: nothing is mixed, so nothing has to be told apart.
func TestEraseAllBelowTheFence(t *testing.T) {
	t.Parallel()
	e := running(t, oneLane("app", 100_000))
	p := e.producer("app")
	n := uint64(0)
	send := func() {
		for i := range 5 {
			p.Log(producer.Event{Time: feb(i, 1000), UserID: "u-7", Message: fmt.Sprint(n)})
		}
		e.flush(p)
		n += 5
		e.stored("app", n, 30*time.Second) // an insert of its own
	}
	send()
	send()
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "app", Users: []string{"u-7"}})
	if err != nil {
		t.Fatal(err)
	}
	send()
	s := e.shards("app")[0]
	stream, err := e.js().Stream(t.Context(), schemas.StreamShards)
	if err != nil {
		t.Fatal(err)
	}
	subject := schemas.ShardSubject("app", s.Month, s.ID)
	last, err := stream.GetLastMsgForSubject(t.Context(), subject)
	if err != nil {
		t.Fatal(err)
	}
	behind, err := streams.FindBehind(t.Context(), e.reg.JetStream(), subject, job.UpTo(), 0, last.Sequence)
	if err == nil { // as the janitor does
		err = stream.Purge(t.Context(), jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(behind))
	}
	if err != nil {
		t.Fatal(err)
	}
	if job, err = x.Run(t.Context(), "app", job.ID); err != nil || job.Rows != 10 {
		t.Fatalf("%+v, %v; want 10 rows", job, err)
	}
	e.verify(15)
}
