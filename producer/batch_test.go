package producer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// threeMonths are n events that a keyed batch cuts into several frames.
func threeMonths(n int) []Event {
	from := time.Date(2026, 8, 31, 0, 0, 0, 0, time.UTC)
	events := make([]Event, n)
	for i := range events {
		events[i] = Event{
			Time: from.Add(time.Duration(i%3) * 31 * 24 * time.Hour).Add(time.Duration(i) * time.Second), UserID: user(i % 7),
			Message: fmt.Sprint(i, strings.Repeat(" text", i%60)), Attrs: []Attr{schemas.Int64("n", int64(i))},
		}
	}
	return events
}

func fill(t *testing.T, b *Batch, events []Event) *Batch {
	t.Helper()
	for i := range events {
		if err := b.Add(events[i]); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// numbers are the attribute n of events, in order.
func numbers(events []Event) []string {
	out := make([]string, 0, len(events))
	for i := range events {
		for j := range events[i].Attrs {
			if events[i].Attrs[j].Key == "n" {
				out = append(out, events[i].Attrs[j].Text())
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestBatchIsStored(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic, _ = topic.Declared()
	e := newEnv(t, topic)
	p := e.connect(Config{Topic: "app", Stderr: io.Discard, BufferBytes: minBufferBytes, Linger: time.Minute})
	events := threeMonths(3000)
	b := fill(t, p.NewBatch(""), events)
	if err := b.Add(Event{Message: strings.Repeat("x", schemas.MaxEventBytes+1)}); !errors.Is(err, schemas.ErrEventTooLarge) {
		t.Fatalf("an event that is too large: %v", err)
	}
	if b.Len() != 3000 || p.Stats().Logged != 0 {
		t.Fatalf("the batch has %d events and the producer took %d, want 3000 and 0", b.Len(), p.Stats().Logged)
	}
	if err := b.Submit(e.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := b.Wait(e.ctx()); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(numbers(events), numbers(e.events(&topic))); d != "" {
		t.Fatal(d)
	}
	if b.Repeated() {
		t.Fatal("a batch without a key is said to be a repetition")
	}
}

func TestKeyedBatchIsStoredOnce(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic, _ = topic.Declared()
	e := newEnv(t, topic, withSync)
	events := threeMonths(5000)
	send := func(key string, events []Event) *Batch {
		p, err := Connect(e.ctx(), e.srv.ClientURL(), Config{Topic: "app", Stderr: io.Discard, BufferBytes: 1 << 20})
		e.must(err)
		defer func() { _ = p.Close(e.ctx()) }()
		b := fill(t, p.NewBatch(key), events)
		if err := b.Submit(e.ctx()); err != nil {
			t.Error(err)
		}
		if err := b.Wait(e.ctx()); err != nil {
			t.Error(err)
		}
		return b
	}
	if send("once", events).Repeated() {
		t.Fatal("the first try is said to be a repetition")
	}
	e.stopServer()
	e.startServer()
	var tries sync.WaitGroup
	for range 8 {
		tries.Go(func() {
			if !send("once", events).Repeated() {
				t.Error("a repetition is not said to be one")
			}
		})
	}
	tries.Wait()
	if got := e.events(&topic); len(got) != len(events) {
		t.Fatalf("%d events are stored, want %d", len(got), len(events))
	}
	// The same key with other events is another batch: nothing of it may be lost.
	if send("once", events[1:]).Repeated() {
		t.Fatal("other events under the same key are said to be a repetition")
	}
	if got := e.events(&topic); len(got) != 2*len(events)-1 {
		t.Fatalf("%d events are stored, want %d", len(got), 2*len(events)-1)
	}
}

func TestKeyedBatchIsCutAlike(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic.Lanes = 4
	topic, _ = topic.Declared()
	cut := func(cfg Config) (frames []string) {
		link := &captureLink{}
		cfg.Topic, cfg.Stderr = "app", io.Discard
		cfg, err := cfg.declared()
		if err != nil {
			t.Fatal(err)
		}
		p := start(cfg, topic, link)
		defer func() { _ = p.Close(context.Background()) }()
		b := fill(t, p.NewBatch("k"), threeMonths(9000))
		if err := b.Submit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, f := range link.all() {
			frames = append(frames, fmt.Sprint(f.msgID, " ", f.head.Rows))
		}
		slices.Sort(frames)
		return frames
	}
	wide := cut(Config{})
	if narrow := cut(Config{BufferBytes: 600 << 10, InFlight: 1}); !slices.Equal(wide, narrow) {
		t.Fatalf("two producers cut one batch differently:\n%s\n%s", wide, narrow)
	}
	if len(wide) < 12 {
		t.Fatalf("the batch was cut into %d frames only; the test wants several of a place", len(wide))
	}
}

func TestKeyedBatchWantsTimes(t *testing.T) {
	t.Parallel()
	p, err := NewDiscard(schemas.NewTopic("app"), Config{Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(t.Context()) }()
	if err := p.NewBatch("k").Add(Event{Message: "now"}); !errors.Is(err, ErrKey) {
		t.Fatalf("an event without a time: %v, want ErrKey", err)
	}
}

func TestOldestUnanswered(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic, _ = topic.Declared()
	cfg, err := Config{Topic: "app", Stderr: io.Discard}.declared()
	if err != nil {
		t.Fatal(err)
	}
	p := start(cfg, topic, &silentLink{})
	defer func() {
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		_ = p.Close(gone)
	}()
	if age := p.Stats().OldestUnanswered; age != 0 {
		t.Fatalf("%s without a frame", age)
	}
	b := fill(t, p.NewBatch(""), threeMonths(3))
	if err := b.Submit(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a frame gets old", func() bool { return p.Stats().OldestUnanswered > 20*time.Millisecond })
	gone, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := b.Wait(gone); !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("waiting ended with %v", err)
	}
}

// Events with an identity have its lane whether they come alone, in a batch, or in a keyed batch, also one that is sent
// again by another producer without ids where the lanes are cut by id.
func TestBatchesKeepIdentitiesInTheirLanes(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"trace_id", "id"} {
		topic := schemas.Topic{Name: "app", Lanes: 16, OnceBy: []string{by}}
		topic, err := topic.Declared()
		if err != nil {
			t.Fatal(err)
		}
		lanes := func(key string) (at []string) {
			link := &captureLink{}
			cfg, err := Config{Topic: "app", Stderr: io.Discard}.declared()
			if err != nil {
				t.Fatal(err)
			}
			p := start(cfg, topic, link)
			var events []Event
			for i := range 300 {
				events = append(events, Event{Time: time.Unix(1.7e9, int64(i/3)), TraceID: fmt.Sprint(i / 2), UserID: fmt.Sprint(i)})
			}
			if key == "alone" {
				for _, ev := range events {
					p.Log(ev)
				}
			} else {
				b := fill(t, p.NewBatch(key), events)
				if err := b.Submit(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, f := range link.all() {
				var r frame.Reader
				if err := r.Open(f.payload, &topic, topic.Version); err != nil {
					t.Fatal(err)
				}
				for i := range r.Rows() {
					ev := r.Event(i)
					if want := schemas.LaneOf(&topic, &ev, r.Ts(i), "another"); f.lane != want {
						t.Fatalf("%s, key %q: an event in lane %d, its identity has %d", by, key, f.lane, want)
					}
					at = append(at, fmt.Sprint(ev.UserID, " in ", f.lane))
				}
			}
			slices.Sort(at)
			return at
		}
		if alone, batch := lanes("alone"), lanes(""); len(alone) != 300 || len(batch) != 300 {
			t.Errorf("%s: %d and %d events", by, len(alone), len(batch))
		}
		if one, again := lanes("k"), lanes("k"); len(one) != 300 || !slices.Equal(one, again) {
			t.Errorf("%s: sent again under its key the batch lies in other lanes", by)
		}
	}
}
