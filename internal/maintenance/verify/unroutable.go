package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/wire"
)

// unroutable accounts for messages under topics that were never declared: those kept as
// dead letters, and those that still wait for it.
func (v *Verifier) unroutable(ctx context.Context, topics []schemas.Topic, rep *Report) error {
	strays := map[string]*TopicReport{}
	for _, t := range topics {
		strays[t.Name] = nil
	}
	of := func(topic string) *TopicReport {
		t, seen := strays[topic]
		if !seen {
			t = &TopicReport{Topic: topic}
			strays[topic] = t
		}
		return t // nil: declared
	}
	err := streams.EachCheckpoint(ctx, v.js, schemas.SubjectsRouted, func(cp *streams.Routed) error {
		if of(cp.Topic) == nil || cp.Err != nil { // cuts names what cannot be read
			return nil
		}
		of(cp.Topic).add(Totals{Dead: cp.Dead, Accepted: cp.Dead})
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify: checkpoints: %w", err)
	}
	subjects, err := streams.Subjects(ctx, v.js, schemas.StreamEvents, schemas.SubjectsEvents)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	hidden, err := streams.Hidden(ctx, v.js, schemas.StreamEvents)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	if hidden > 0 { // under subjects with the byte 0x7F: a router sweeps them
		of(schemas.NoTopic).add(Totals{Pending: hidden, Accepted: hidden})
	}
	for subject, n := range subjects {
		name, _, _, err := schemas.EventsTokens(subject)
		if err != nil {
			name = schemas.NoTopic
		}
		if of(name) != nil {
			of(name).add(Totals{Pending: n, Accepted: n})
		}
	}
	_, err = streams.Headers(ctx, v.js, schemas.StreamShards, schemas.DeadSubject(schemas.NoTopic), 1, func(m *streams.Message) error {
		if m.Header.Get(schemas.HeaderReason) == wire.ReasonForeign {
			rep.Foreign++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify: dead letters: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(strays)) {
		if t := strays[name]; t != nil {
			letters, err := v.letters(ctx, name)
			if err != nil {
				return err
			}
			t.resolve(letters)
			rep.add(t)
		}
	}
	return nil
}

// replaced names what took the place of records in a topic's front, by its dead letters: what had been written there and
// was not stored yet is lost.
func (v *Verifier) replaced(ctx context.Context, t *schemas.Topic, rep *TopicReport) error {
	if t.Front() == "" || rep.Dead == 0 {
		return nil
	}
	s, n := ShardReport{Name: t.Name}, 0
	_, err := streams.Headers(ctx, v.js, schemas.StreamShards, schemas.DeadSubject(t.Name), 1, func(m *streams.Message) error {
		if m.Header.Get(schemas.HeaderReason) != schemas.ReasonReplaced {
			return nil
		}
		if n++; n <= maxDiffer {
			s.Problems = append(s.Problems, fmt.Sprintf("topic %s: message %s of %s, on %q, was not a record and took the place of what was there: what had been written and was not stored yet is lost; `almanac dead drop %s --reason %s --yes` once that is known",
				t.Name, m.Header.Get(schemas.HeaderSourceSeq), t.Front(), m.Header.Get(schemas.HeaderSourceSubject), t.Name, schemas.ReasonReplaced))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verify: dead letters: %w", err)
	}
	if more := n - maxDiffer; more > 0 {
		s.Problems = append(s.Problems, fmt.Sprintf("topic %s: %d more such messages", t.Name, more))
	}
	if n > 0 {
		rep.Shards = append(rep.Shards, s)
	}
	return nil
}

// letters are what people did with the dead letters of a topic; none where that is not readable.
func (v *Verifier) letters(ctx context.Context, topic string) (registry.Letters, error) {
	l, err := v.reg.Letters(ctx, topic)
	if errors.Is(err, registry.ErrUnreadable) {
		v.odd(err)
		err = nil
	}
	return l, err
}
