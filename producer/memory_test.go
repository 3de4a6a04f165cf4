package producer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// An application's test has a producer without servers, which
// validates, applies rules, is bounded, and closes as on servers.
func TestMemoryOfAProducer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		topic := schemas.NewTopic("app")
		topic.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}}
		m := producer.NewMemory(topic)
		if _, err := m.Producer(producer.Config{Topic: "other"}); !errors.Is(err, producer.ErrUnknownTopic) {
			t.Errorf("another topic: %v", err)
		}
		for name, cfg := range map[string]producer.Config{
			"spool": {Topic: "app", Policy: producer.Spool, SpoolDir: "x"}, "a bad config": {Topic: "app", InFlight: -1},
		} {
			if _, err := m.Producer(cfg); !errors.Is(err, producer.ErrConfig) {
				t.Errorf("%s: %v", name, err)
			}
		}
		p, err := m.Producer(producer.Config{Topic: "app", Service: "api", BufferEvents: 100})
		if err != nil {
			t.Fatal(err)
		}
		p.Log(producer.Event{Message: "hello", UserID: "u-7", Attrs: []producer.Attr{producer.String("email", "a@b.c"), producer.Int64("n", 3)}})
		p.Log(producer.Event{Message: strings.Repeat("x", schemas.MaxEventBytes)})
		if err := p.Publish(ctx, producer.Event{Time: time.Now().Add(1000 * time.Hour)}); !errors.Is(err, schemas.ErrTimeTooFarAhead) {
			t.Errorf("an event of the future: %v", err)
		}
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		events := m.Events()
		if len(events) != 1 || events[0].Message != "hello" || events[0].Service != "api" || events[0].ID.IsZero() || strings.Contains(fmt.Sprint(events), "a@b.c") {
			t.Errorf("%+v", events)
		}
		// An outage: what comes above the buffer is dropped and counted, the rest arrives afterwards, once.
		m.SetAway(true)
		for range 150 {
			p.Log(producer.Event{Message: "later"})
		}
		time.Sleep(time.Minute) // of the bubble's clock
		m.SetAway(false)
		if err := p.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		dropped := p.Stats().Dropped
		if n := len(m.Events()); n < 101 || uint64(n)+dropped[producer.CauseBufferFull] < 151 || dropped[producer.CauseBufferFull] == 0 {
			t.Errorf("%d events, dropped %v", n, dropped)
		}
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := p.Publish(ctx, producer.Event{Message: "late"}); !errors.Is(err, producer.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		// What Close cannot flush is told.
		if p, err = m.Producer(producer.Config{Topic: "app"}); err != nil {
			t.Fatal(err)
		}
		m.SetAway(true)
		p.Log(producer.Event{Message: "lost"})
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := p.Close(short); !errors.Is(err, producer.ErrNotFlushed) {
			t.Errorf("Close during an outage: %v", err)
		}
	})
}
