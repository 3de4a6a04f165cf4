package router

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// maxLate bounds the late messages of a lane that one sweep takes out.
const maxLate = 10_000

// late is a message that came under the name of a topic which was removed.
type late struct {
	seq, events uint64
	producer    string
	at          time.Time
}

// lateOf is what a message counts as.
func lateOf(h nats.Header, seq uint64, at time.Time) late {
	events, _ := strconv.ParseUint(h.Get(schemas.HeaderRows), 10, 64)
	return late{seq, events, h.Get(schemas.HeaderProducer), at}
}

// isEarlier reports whether a message is a frame of an earlier topic of the lane's name: its producer ran, or had it in a spool, since
// before that was removed. Messages without a schema version cannot be told apart.
func (l *lane) isEarlier(m *message) bool {
	if l.evaluator.topic == nil || l.evaluator.topic.First == 0 || !schemas.HasFrameHeaders(m.header) {
		return false
	}
	v, err := strconv.Atoi(m.header.Get(schemas.HeaderSchema))
	return err == nil && l.evaluator.topic.Earlier(v)
}

// countEarlier counts the frames of an earlier topic in its removal, before the batch that passes over them is committed: a lane that is
// killed in between reads them again, and they are not counted again.
func (l *lane) countEarlier(ctx context.Context) error {
	if len(l.earlier) == 0 {
		return nil
	}
	d, err := l.cfg.Registry.AmendRemoval(ctx, l.topic, func(d *registry.Removal) bool {
		for _, m := range l.earlier {
			d.Late.Count(l.token, m.seq, m.events, m.producer, m.at)
		}
		return true
	})
	if err != nil && !errors.Is(err, registry.ErrNotFound) { // a lost entry stops no lane
		return err
	}
	l.cfg.Hooks.fault(l.topic, l.token, lateFault(len(l.earlier), &d))
	l.earlier = nil
	return nil
}

// lateFault says that messages came late.
func lateFault(n int, d *registry.Removal) error {
	return fmt.Errorf("%w: %d messages were sent to it and are not kept; so far %d with %d events, from producers %s",
		errRemoved, n, d.Late.Messages, d.Late.Events, strings.Join(d.Late.Producers, ", "))
}

// takeOutLateRecords takes out of the fronts what was written for topics after they were removed, by writers that stood still from
// their last look until the removal had ended, and counts it in the removal. It lies under no subject of a topic: the name's next one
// has others (schemas.FrontTopic).
func (r *Router) takeOutLateRecords(ctx context.Context, removals map[string]registry.Removal, topics map[string]*schemas.Topic) error {
	for name := range removals {
		d := removals[name]
		if d.Ended == nil {
			continue // it takes them itself
		}
		for _, first := range d.Firsts() {
			if t := topics[name]; t != nil && t.First == first {
				continue // it is back, by a copy from before
			}
			token := schemas.FrontTopic(name, first)
			for _, front := range []string{schemas.StreamDocs, schemas.StreamTimers} {
				if err := r.takeOutLateOf(ctx, name, front, schemas.FrontTopicFilter(front, token), "in "+front+" "+token); err != nil {
					return err
				}
			}
			if err := r.takeOutLateOf(ctx, name, schemas.StreamDocs, schemas.DocLockTopicFilter(token), "locks "+token); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOutLateOf takes out what a filter selects in a front, some at a time. where names it in the removal.
func (r *Router) takeOutLateOf(ctx context.Context, topic, front, filter, where string) error {
	subjects, err := streams.Subjects(ctx, r.js, front, filter)
	if err != nil || len(subjects) == 0 {
		return err
	}
	s, err := streams.Open(ctx, r.js, front)
	if err != nil {
		return fmt.Errorf("router: stream %s: %w", front, err)
	}
	var found []late
	_, err = streams.Headers(ctx, r.js, front, filter, 1, func(m *streams.Message) error {
		if len(found) == maxLate {
			return errEnough
		}
		found = append(found, late{m.Sequence, 1, m.Header.Get(schemas.HeaderBy), m.Time})
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) || len(found) == 0 {
		return err
	}
	d, err := r.cfg.Registry.AmendRemoval(ctx, topic, func(d *registry.Removal) bool {
		for _, m := range found {
			d.Late.Count(where, m.seq, m.events, m.producer, m.at)
		}
		return true
	})
	if err != nil {
		return err
	}
	r.cfg.Hooks.fault(topic, where, lateFault(len(found), &d))
	if err := streams.PurgeWith(ctx, r.js, s, filter, streams.Refuse, jetstream.WithPurgeSequence(found[len(found)-1].seq+1)); err != nil {
		return fmt.Errorf("router: %w", err)
	}
	return nil
}

// errEnough ends a read at maxLate.
var errEnough = errors.New("enough")

// takeOutLate takes what a lane of a removed topic has in EVENTS out, up to a sequence, and counts it in the removal. They are not dead
// letters: a spool may hold millions. upTo was there before the topic was seen to be undeclared, so that nothing is taken
// which was sent after the name was declared again. It may be killed at any point: what is counted is not counted again.
func (r *Router) takeOutLate(ctx context.Context, s unroutable, upTo uint64) error {
	var found []late
	_, err := streams.Headers(ctx, r.js, schemas.StreamEvents, s.filter, 1, func(m *streams.Message) error {
		if m.Sequence > upTo || len(found) == maxLate {
			return errEnough
		}
		found = append(found, lateOf(m.Header, m.Sequence, m.Time))
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) || len(found) == 0 {
		return err
	}
	d, err := r.cfg.Registry.AmendRemoval(ctx, s.source.topic, func(d *registry.Removal) bool {
		if d.Ended == nil {
			return false
		}
		for _, m := range found {
			d.Late.Count(s.token, m.seq, m.events, m.producer, m.at)
		}
		return true
	})
	if err != nil || d.Ended == nil {
		return err
	}
	r.cfg.Hooks.fault(s.source.topic, s.token, lateFault(len(found), &d))
	if err := streams.PurgeWith(ctx, r.js, r.events, s.filter, streams.Refuse, jetstream.WithPurgeSequence(found[len(found)-1].seq+1)); err != nil {
		return fmt.Errorf("router: %w", err)
	}
	return nil
}
