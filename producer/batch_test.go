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
