package router

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// What is not a record on a key's own subject lies above the key's records, and holds the cleaner up. Once a lane's router
// has kept it as a dead letter, one router of all takes it out of its front. What took the place of the records
// stays: it alone says that there were some, and repair puts back what ClickHouse has.

// letterSweep is how far the dead letters of topics with a front were looked at in this process.
type letterSweep struct {
	end  uint64 // of SHARDS, up to which all were
	upTo map[string]uint64
}

// takeOutLetters takes out of the fronts what is kept as a dead letter since the last look, some at a time.
func (r *Router) takeOutLetters(ctx context.Context, s *letterSweep) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	end, err := streams.LastSeq(ctx, r.js, schemas.StreamShards)
	if err != nil || end == s.end {
		return err
	}
	if end < s.end || s.upTo == nil { // it lost its end
		s.upTo = map[string]uint64{}
	}
	topics, err := r.cfg.Registry.Topics(ctx)
	if err != nil {
		return err
	}
	all := true
	for i := range topics {
		t := &topics[i]
		if recordEvents[t.Kind] == nil {
			continue
		}
		n, err := r.takeOutLettersOf(ctx, t, s)
		if err != nil {
			return err
		}
		all = all && n < maxForeign
	}
	if all {
		s.end = end
	}
	return nil
}

func (r *Router) takeOutLettersOf(ctx context.Context, t *schemas.Topic, s *letterSweep) (n int, err error) {
	subject := schemas.DeadSubject(t.Name)
	_, err = streams.DecideNext(ctx, r.js, schemas.StreamShards, subject, s.upTo[t.Name]+1)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("router: dead letters of topic %q: %w", t.Name, err)
	}
	type letter struct {
		seq    uint64
		source schemas.Source
	}
	var letters []letter
	enough := errors.New("enough")
	_, err = streams.Headers(ctx, r.js, schemas.StreamShards, subject, s.upTo[t.Name]+1, func(m *streams.Message) error {
		if len(letters) == maxForeign {
			return enough
		}
		letters = append(letters, letter{m.Sequence, schemas.SourceOf(m.Header)})
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		return 0, fmt.Errorf("router: dead letters of topic %q: %w", t.Name, err)
	}
	for _, l := range letters {
		if err := r.takeOutSource(ctx, t, l.source); err != nil {
			return 0, err
		}
		s.upTo[t.Name] = l.seq
	}
	return len(letters), nil
}

// takeOutSource removes a message of a front that is kept as a dead letter and is not a record.
func (r *Router) takeOutSource(ctx context.Context, t *schemas.Topic, source schemas.Source) error {
	m, err := streams.DecideAt(ctx, r.js, t.Front(), source.Seq)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil // taken out before
	case err != nil:
		return fmt.Errorf("router: message %d of %s: %w", source.Seq, t.Front(), err)
	case m.Time.UnixNano() != source.Stored, isRecord(t, m):
		return nil
	}
	if schemas.Replaces(m.Header) {
		last, err := streams.DecideLast(ctx, r.js, t.Front(), m.Subject)
		if err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
			return fmt.Errorf("router: %s: %w", m.Subject, err)
		}
		if err != nil || !isRecord(t, last) { // else what was there is restored already
			return nil
		}
	}
	stream, err := streams.Open(ctx, r.js, t.Front())
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	if err := streams.Delete(ctx, r.js, stream, m.Sequence, false, streams.Refuse); err != nil {
		return fmt.Errorf("router: message %d of %s: %w", m.Sequence, t.Front(), err)
	}
	return nil
}

// isRecord reports whether a message of a topic's front is a record.
func isRecord(t *schemas.Topic, m *streams.Message) bool {
	j := evaluator{topic: t}
	_, _, err := j.record(&message{subject: m.Subject, seq: m.Sequence, stored: m.Time, header: m.Header, data: m.Data})
	return !errors.Is(err, schemas.ErrRecord)
}
