package integration

import (
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
	begin := func() *streams.Copying {
		t.Helper()
		c, err := streams.BeginCopying(t.Context(), js)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	publish()
	round(1)
	first, second := begin(), begin() // two that know nothing of each other
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

	full := begin()
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
	if _, err := e.reg.JetStream().UpdateStream(t.Context(), info.Config); err != nil {
		t.Fatal(err)
	}
	round(1)
	if err := full.Still(t.Context()); !errors.Is(err, streams.ErrPurged) {
		t.Errorf("a stream that is nearly full was purged, and the copy says %v", err)
	}
	if copies, err := streams.Copied(t.Context(), js); err != nil || len(copies) > 0 {
		t.Errorf("janitors would wait for a copy that is not whole: %v, %v", copies, err)
	}
}
