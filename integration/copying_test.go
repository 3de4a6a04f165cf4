package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// While the streams are copied the janitor takes nothing out of them, so that the checkpoint before the copy's point in time is there when SHARDS is read. Where
// a stream is nearly full it does not wait, and the copy is told. After the copy it goes on.
func TestJanitorWaitsForACopy(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes = 1
	e := start(t, topic)
	e.router()
	p := e.producer("app")
	sent := 0
	publish := func() {
		t.Helper()
		for range 5 {
			p.Log(producer.Event{Time: feb(sent, 1000), Message: fmt.Sprint(sent)})
			sent++
			e.flush(p)
			e.routed("app", uint64(sent))
		}
	}
	checkpoints := func() int { return len(e.messages(schemas.StreamShards, schemas.RoutedSubject("app", "0"))) }
	nc := e.connect()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	j, err := retention.New(t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.sinkDB})
	if err != nil {
		t.Fatal(err)
	}
	round := func(want int) {
		t.Helper()
		if err := j.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := checkpoints(); n != want {
			t.Errorf("%d checkpoints are left, want %d", n, want)
		}
	}
	begin := func() (context.Context, *streams.Copying) {
		t.Helper()
		ctx, c, err := streams.BeginCopying(t.Context(), js)
		if err != nil {
			t.Fatal(err)
		}
		return ctx, c
	}
	publish()
	round(1)
	_, first := begin()
	_, second := begin() // they know nothing of each other
	publish()
	round(6)
	if err := errors.Join(first.Still(t.Context()), second.Still(t.Context())); err != nil {
		t.Errorf("nothing was purged: %v", err)
	}
	copies, err := streams.Copied(t.Context(), js)
	if err != nil || len(copies) != 2 {
		t.Fatalf("%v, %v", copies, err)
	}
	for _, subject := range copies { // as after a write whose answer was lost
		last, err := streams.DecideLast(t.Context(), js, schemas.KVStream, subject)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.Publish(t.Context(), subject, last.Data, jetstream.WithMsgTTL(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(first.Still(t.Context()), second.Still(t.Context()), first.Still(t.Context())); err != nil {
		t.Errorf("an answer was lost: %v", err)
	}
	first.End(t.Context())
	round(6)
	second.End(t.Context())
	round(1)

	whole, full := begin()
	defer full.End(t.Context())
	publish()
	stream, err := streams.Open(t.Context(), js, schemas.StreamShards)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	info.Config.MaxBytes = int64(info.State.Bytes * 10 / 9)
	if _, err := e.js().UpdateStream(t.Context(), info.Config); err != nil {
		t.Fatal(err)
	}
	round(1)
	if err := full.Still(t.Context()); !errors.Is(err, streams.ErrPurged) {
		t.Errorf("a stream that is nearly full was purged, and the copy says %v", err)
	}
	if cause := context.Cause(whole); !errors.Is(cause, streams.ErrPurged) { // so it ends at once
		t.Errorf("what copies goes on: %v", cause)
	}
	if copies, err := streams.Copied(t.Context(), js); err != nil || len(copies) > 0 {
		t.Errorf("janitors would wait for a copy that is not whole: %v, %v", copies, err)
	}
}

// A copy that begins while a janitor is in the middle of a round ends that round: what it would have purged stays, and goes after the copy.
func TestJanitorEndsItsRoundForACopy(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes = 1
	e := start(t, topic)
	e.router()
	stop := e.sink()
	p := e.producer("app")
	const n = 6
	for i := range n {
		p.Log(producer.Event{Time: feb(i, 1000), Message: fmt.Sprint(i)})
		e.flush(p)
		e.routed("app", uint64(i+1))
	}
	e.stored("app", n, time.Minute)
	stop() // and the janitor in it
	nc := e.connect()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var copying *streams.Copying
	ahead, copies := time.Duration(0), false
	j, err := retention.New(t.Context(), nc, retention.Config{Registry: e.registry(nc), DB: e.sinkDB, Now: func() time.Time { // it is asked when a round has begun
		if copies {
			if _, copying, err = streams.BeginCopying(t.Context(), js); err != nil {
				t.Error(err)
			}
		}
		return time.Now().Add(ahead)
	}})
	if err != nil {
		t.Fatal(err)
	}
	left := func() string {
		t.Helper()
		return fmt.Sprint(len(e.messages(schemas.StreamEvents, schemas.SubjectsEvents)), len(e.messages(schemas.StreamShards, schemas.SubjectsShards)),
			len(e.messages(schemas.StreamShards, schemas.RoutedSubject("app", "0"))))
	}
	round := func(want string) {
		t.Helper()
		if err := j.Round(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != want {
			t.Errorf("messages in EVENTS, frames and checkpoints that are left: %s, want %s", got, want)
		}
	}
	round("6 6 1")
	ahead, copies = 8*24*time.Hour, true // all is old enough to go
	round("6 6 1")
	ahead, copies = 9*24*time.Hour, false // how far lanes were routed is known as of the round before
	copying.End(t.Context())
	round("1 1 1")
}
