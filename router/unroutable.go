package router

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Strays are messages under no lane of a topic: of an undeclared topic, or
// under a subject that is none. They were acknowledged, so they are answered
// for: one router of all keeps them as dead letters and takes them out of EVENTS.
// They are few and odd, so they are swept up now and then, not followed.

// maxUnroutableSources bounds the sources of one sweep; the next takes the rest.
const maxUnroutableSources = 200

// sweepUnroutable sweeps until ctx ends.
func (r *Router) sweepUnroutable(ctx context.Context) {
	round := 0
	for range backoff.Ticks(ctx, r.cfg.Discover) {
		if !r.members.Owns("strays") {
			continue
		}
		round++
		if err := r.sweep(ctx, round%lateEvery == 0); err != nil && !errors.Is(err, streams.ErrCopying) && ctx.Err() == nil {
			r.cfg.Hooks.fault(schemas.NoTopic, "", err)
		}
	}
}

// unroutable is a source outside the lanes; topic is the one that it names, nil when that was never declared.
type unroutable struct {
	source
	topic *schemas.Topic
}

// unroutableOf is the source a subject of EVENTS belongs to, or false when it is a
// lane's. What could become a lane, once its topic is declared, is dealt with
// under that lane's own checkpoint, so that the two cannot both deal with it;
// anything else has a checkpoint for its subject.
func unroutableOf(subject string, topics map[string]*schemas.Topic) (unroutable, bool) {
	name, _, token, err := schemas.EventsTokens(subject)
	if err != nil { // too short or too long: of no lane, and the rules of the topic that it names hold
		name, token = namedTopic(subject), ""
	}
	lane, laneErr := schemas.ParseLane(token)
	t := topics[name]
	front := t != nil && t.Front() != "" // its lanes are elsewhere, and so are their checkpoints
	if t != nil && laneErr == nil && lane < t.Lanes && !front {
		return unroutable{}, false
	}
	if laneErr == nil && schemas.ValidateTopicName(name) == nil && !front {
		return unroutable{laneSource(&schemas.Topic{Name: name}, "", token), t}, true
	}
	return unroutable{subjectSource(subject), t}, true
}

// subjectSource is a subject outside the lanes, with a checkpoint of its own.
func subjectSource(subject string) source {
	key := schemas.UnroutableKey(subject)
	return source{
		topic: schemas.NoTopic, token: key, filter: schemas.FilterOf(subject), only: subject,
		routed: schemas.RoutedSubject(schemas.NoTopic, key), dead: schemas.DeadSubject(schemas.NoTopic),
	}
}

// namedTopic is the second word of a subject, whatever follows it.
func namedTopic(subject string) string {
	_, rest, _ := strings.Cut(subject, ".")
	name, _, _ := strings.Cut(rest, ".")
	return name
}

// lateEvery is how many sweeps pass between two looks for late records in fronts, which nothing waits for.
const lateEvery = 5

// sweep deals with the unroutable messages that are in EVENTS now, and where fronts is set with those in the fronts.
func (r *Router) sweep(ctx context.Context, fronts bool) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	info, err := streams.Info(ctx, r.js, schemas.StreamEvents)
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	subjects, err := streams.Subjects(ctx, r.js, schemas.StreamEvents, schemas.SubjectsEvents)
	if err != nil {
		return fmt.Errorf("router: subjects of %s: %w", schemas.StreamEvents, err)
	}
	rev, err := r.cfg.Registry.Revision(ctx)
	if err != nil {
		return err
	}
	r.reading.hold("strays", rev) // its letters are kept by the rules that are read now
	defer r.reading.end("strays")
	list, err := r.cfg.Registry.Topics(ctx)
	if err != nil {
		return err
	}
	removals, err := r.cfg.Registry.Removals(ctx)
	if err != nil {
		return err
	}
	topics := make(map[string]*schemas.Topic, len(list))
	for i := range list {
		topics[list[i].Name] = &list[i]
	}
	copying := false // then what is kept as a letter stays where it was too, and goes after the copy
	if err := streams.MayTake(ctx, r.js); errors.Is(err, streams.ErrCopying) {
		copying = true
	} else if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	if fronts && !copying {
		if err := r.takeOutLateRecords(ctx, removals, topics); err != nil {
			return err
		}
	}
	found := map[string]unroutable{}
	for subject := range subjects {
		if s, ok := unroutableOf(subject, topics); ok && len(found) < maxUnroutableSources {
			found[s.routed] = s
		}
	}
	lost := map[string]error{} // of the undeclared topics
	for _, s := range found {
		if s.topic == nil {
			if d, removed := removals[s.source.topic]; removed && d.Ended == nil {
				continue // its removal takes them
			}
			if _, asked := lost[s.source.topic]; !asked {
				lost[s.source.topic] = r.notLost(ctx, s.source.topic)
			}
			if lost[s.source.topic] != nil {
				continue
			}
			if _, removed := removals[s.source.topic]; removed {
				if copying {
					continue
				}
				if err := r.takeOutLate(ctx, s, info.State.LastSeq); err != nil {
					return err
				}
				continue
			}
		}
		if err := r.drain(ctx, s, nil, copying); err != nil {
			return err
		}
	}
	failed := slices.Collect(maps.Values(lost))
	if !copying {
		failed = append(failed, r.sweepHidden(ctx, info.State.Msgs, subjects, topics))
	}
	return errors.Join(failed...)
}

// notLost refuses to call a topic undeclared that has frames in SHARDS: the
// registry lost it. Its events wait.
func (r *Router) notLost(ctx context.Context, topic string) error {
	if schemas.ValidateTopicName(topic) != nil {
		return nil
	}
	lost, err := registry.Lost(ctx, r.js, topic)
	if err == nil && lost {
		err = fmt.Errorf("%w: topic %q has frames in %s and no descriptor; run `almanac repair %s`", registry.ErrLost, topic, schemas.StreamShards, topic)
	}
	return err
}

// sweepTimeout bounds a sweep: its sources take milliseconds each.
const sweepTimeout = time.Minute

// drain routes a stray source to its present end and takes what was dealt with
// out of EVENTS, but for while that is copied: then it reads what is new, and leaves it. hidden are
// its messages where no filter finds them.
func (r *Router) drain(ctx context.Context, s unroutable, hidden []uint64, copying bool) error {
	l := &lane{
		cfg: &r.cfg, js: r.js, shards: r.shards, self: r.members.Self(), group: r.group, entries: r.entries,
		source: s.source, sweeping: true, active: map[schemas.Month]*shardState{},
	}
	l.evaluator.topic, l.evaluator.key = s.topic, r.cfg.PrivacyKey // it may be declared meanwhile
	var err error
	if l.cp, l.ckSeq, err = loadCheckpoint(ctx, l.js, l.routed); err != nil {
		return err
	}
	if err := l.findKept(ctx); err != nil {
		return err
	}
	l.cp.Router = l.self
	from := uint64(1)
	if copying {
		from = l.cp.Source + 1 // what has a number again is found after the copy
	}
	var odd []uint64 // to delete one by one
	var msgs []message
	bytes := 0
	upTo := uint64(0) // of what was read: the checkpoint's own sequence may have been given again
	flush := func() error {
		defer func() { msgs, bytes = nil, 0 }()
		return l.route(ctx, msgs)
	}
	take := func(m *streams.Message) (bool, error) {
		if l.only != "" && m.Subject != l.only || hidden == nil && !schemas.Indexed(m.Subject) {
			return true, nil // of a lane, or another stray's: the filter is not a literal subject
		}
		if !schemas.Literal(m.Subject) || hidden != nil {
			odd = append(odd, m.Sequence)
		}
		upTo = max(upTo, m.Sequence)
		if m.Sequence <= l.cp.Source && (l.cp.Stored == 0 || m.Time.UnixNano() <= l.cp.Stored) {
			return true, nil // dealt with by a router that died before it could take it out
		}
		msgs = append(msgs, message{subject: m.Subject, header: m.Header, data: m.Data, seq: m.Sequence, stored: m.Time})
		if bytes += len(m.Data); len(msgs) < r.cfg.MaxBatchMessages && bytes < r.cfg.MaxBatchBytes {
			return true, nil
		}
		return true, flush()
	}
	if hidden == nil {
		err = streams.Gather(ctx, r.js, schemas.StreamEvents, l.filter, from, nil, take)
	} else {
		err = r.eachOf(ctx, hidden, take)
	}
	if err == nil {
		err = flush()
	}
	if err != nil || copying {
		return err
	}
	return r.takeOut(ctx, l, odd, upTo)
}

// takeOut removes a drained source's messages from EVENTS. A subject with a
// wildcard would purge others' messages too, so those go by number.
func (r *Router) takeOut(ctx context.Context, l *lane, odd []uint64, upTo uint64) error {
	for _, seq := range odd {
		if err := streams.Delete(ctx, r.js, r.events, seq, false, streams.Refuse); err != nil {
			return fmt.Errorf("router: %w", err)
		}
	}
	if upTo == 0 || l.only != "" && !(schemas.Literal(l.only) && schemas.Indexed(l.only)) {
		return nil
	}
	if err := streams.PurgeWith(ctx, r.js, r.events, l.filter, streams.Refuse, jetstream.WithPurgeSequence(upTo+1)); err != nil {
		return fmt.Errorf("router: %w", err)
	}
	return nil
}
