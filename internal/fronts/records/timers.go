package records

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// LastTimers reads the last record of each of a topic's timers in TIMERS, by subject and without specs: some
// 700 bytes each. What is not a record is passed over.
func LastTimers(ctx context.Context, js jetstream.JetStream, topic string) (map[string]*timer.Record, error) {
	last := map[string]*timer.Record{}
	_, err := streams.Headers(ctx, js, schemas.StreamTimers, schemas.TimerTopicFilter(topic), 1, func(m *streams.Message) error {
		if r := timerOf(m); r != nil {
			last[m.Subject] = r
		}
		return nil
	})
	return last, err
}

// LastOfTimers reads the last records of some timers, by subject.
func LastOfTimers(ctx context.Context, js jetstream.JetStream, subjects []string) (map[string]*timer.Record, error) {
	last := map[string]*timer.Record{}
	err := streams.LatestOf(ctx, js, schemas.StreamTimers, subjects, func(m *streams.Message) error {
		if r := timerOf(m); r != nil {
			last[m.Subject] = r
		}
		return nil
	})
	return last, err
}

// timerOf is the record of a message; nil of what is none.
func timerOf(m *streams.Message) *timer.Record {
	if !schemas.IsEvent(m.Header, m.Size) {
		return nil
	}
	r, err := timer.Parse(m.Subject, m.Sequence, m.Header, nil)
	if err != nil {
		return nil
	}
	return &r
}
