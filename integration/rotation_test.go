package integration

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// 120,000 events of one lane over shards of 50,000, by four producers, while
// three routers and two sinks share the work.
func TestRotation(t *testing.T) {
	t.Parallel()
	const producers, each, rows = 4, 30_000, schemas.TestRotateRows
	e := start(t, oneLane("usage", rows))
	for range 3 {
		e.router()
	}
	for range 2 {
		e.sink()
	}
	began := time.Now()
	parallel(t, producers, func(n int) {
		p := e.producer("usage")
		for i := range each {
			p.Log(producer.Event{Time: feb(i, each), UserID: fmt.Sprintf("u-%d", i%100), Message: fmt.Sprintf("%d-%d", n, i)})
		}
		e.flush(p)
	})
	t.Logf("accepted after %s", time.Since(began))
	e.stored("usage", producers*each, time.Minute)
	t.Logf("stored after %s", time.Since(began))
	if got := e.count("SELECT uniqExact(message) FROM %s", e.table("usage")); got != producers*each {
		t.Errorf("%d distinct messages, want %d", got, producers*each)
	}
	e.rotated("usage", rows, 3)
	e.whole("usage", producers*each)
	e.verify(producers * each)
}

// A shard is also left for its bytes and for the span of its events, and says
// which it was; each lane rotates by itself.
func TestRotationReasons(t *testing.T) {
	t.Parallel()
	bytes, span := newTopic("bytes"), newTopic("span")
	bytes.Lanes, bytes.Rotate = 2, schemas.Rotation{Bytes: 32 << 10}
	span.Lanes, span.Rotate = 2, schemas.Rotation{Span: 24 * time.Hour}
	e := running(t, bytes, span)
	const days, each = 10, 1000
	for _, topic := range []string{"bytes", "span"} {
		p := e.producer(topic)
		for day := range days {
			for i := range each {
				p.Log(producer.Event{
					Time: feb(day, 28).Add(time.Duration(i) * time.Second), UserID: fmt.Sprintf("u-%d", i%100),
					Message: fmt.Sprintf("%d %d", day, i), Attrs: []producer.Attr{schemas.String("noise", schemas.NewID(int64(i)).String())},
				})
			}
			e.flush(p) // a frame of each lane a day
		}
		e.stored(topic, days*each, 30*time.Second)
		lanes := map[int]int{}
		for _, s := range e.closed(topic, 30*time.Second) {
			lanes[s.ID.Lane()]++
			if s.Reason != "" && s.Reason != topic {
				t.Errorf("%s was rotated for %q, want %q", s.Name(), s.Reason, topic)
			}
			if topic == "span" && s.Reason != "" && time.Duration(s.MaxTs-s.MinTs) > 24*time.Hour {
				t.Errorf("%s spans %s", s.Name(), time.Duration(s.MaxTs-s.MinTs))
			}
		}
		if len(lanes) != 2 || lanes[0] < 3 || lanes[1] < 3 {
			t.Errorf("topic %s: shards by lane are %v, want at least 3 in each of 2", topic, lanes)
		}
		e.whole(topic, days*each)
	}
	e.verify(2 * days * each)
}

// A reader that lists the registry while it is written finds every month and every
// shard: a reader that missed one would miss its events.
func TestRegistryListsWhileItIsWritten(t *testing.T) {
	t.Parallel()
	topic, err := oneLane("app", 0).Declared()
	if err != nil {
		t.Fatal(err)
	}
	e := start(t, topic)
	shard, err := e.reg.Place(t.Context(), &topic, 202602, 0, registry.Point{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	const rotations = 120
	var made atomic.Int64
	made.Store(1)
	parallel(t, 3, func(n int) {
		if n == 0 {
			defer made.Store(-1)
			for range rotations {
				old := shard
				if shard, err = e.reg.Rotate(t.Context(), old, "rows", registry.Point{}, time.Now()); err != nil {
					t.Error(err)
					return
				}
				made.Add(1)
				if err := e.reg.Seal(t.Context(), schemas.ShardRef{Topic: "app", Month: 202602, ID: old.ID}, registry.Point{}, 1, 1, 1); err != nil {
					t.Error(err)
					return
				}
			}
			return
		}
		for want := made.Load(); want > 0; want = made.Load() {
			heads, err := e.reg.Heads(t.Context(), "app")
			if errors.Is(err, streams.ErrCut) {
				continue // the server was too slow, and that was said
			}
			if err != nil || len(heads) != 1 {
				t.Errorf("%d months are listed, want 1 (%v)", len(heads), err)
				return
			}
			shards, err := e.reg.Shards(t.Context(), "app", 0)
			if errors.Is(err, streams.ErrCut) {
				continue
			}
			if err != nil || len(shards) < int(want) {
				t.Errorf("%d shards are listed, want %d or more (%v)", len(shards), want, err)
				return
			}
		}
	})
}

// A listing of more entries than the server answers at once is whole too.
func TestRegistryListsThousands(t *testing.T) {
	t.Parallel()
	e := start(t)
	const topics = 1300
	parallel(t, 8, func(n int) {
		for i := n; i < topics; i += 8 {
			if _, _, err := e.reg.Apply(t.Context(), newTopic(fmt.Sprintf("t%d", i)), false); err != nil {
				t.Error(err)
				return
			}
		}
	})
	got, err := answered(func() ([]schemas.Topic, error) { return e.reg.Topics(t.Context()) })
	if err != nil || len(got) != topics {
		t.Errorf("%d topics are listed, want %d (%v)", len(got), topics, err)
	}
}

// Batches whose events are of two days in turn make two shards of a lane, and not one of each batch.
func TestRotationOfLateEvents(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes, topic.Rotate = 1, schemas.Rotation{Span: 24 * time.Hour}
	e := running(t, topic)
	p := e.producer("app")
	const batches = 30
	for i := range batches {
		if err := p.Publish(t.Context(), producer.Event{Time: feb(3+5*(i%2), 28), Message: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
		e.flush(p)
	}
	e.stored("app", batches, 60*time.Second)
	if n := len(e.shards("app")); n > 2 {
		t.Errorf("%d shards of %d batches over two days", n, batches)
	}
	e.verify(batches)
}
