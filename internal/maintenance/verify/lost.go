package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Lost is a topic that the registry does not know, and what says that it was declared.
type Lost struct {
	Topic string `json:"topic"`
	// Evidence is where it left traces.
	Evidence []string `json:"evidence"`
	// Kept: something else than messages of EVENTS has traces, so repair can restore it.
	Kept bool `json:"kept"`
	// Removed is when the topic was removed; nil: it was not.
	Removed *time.Time `json:"removed,omitempty"`
	// Unledgered: nothing tells what was erased, so repair leaves it alone.
	Unledgered bool `json:"unledgered,omitempty"`
}

// What says what was found.
func (l *Lost) What() string {
	if l.Removed != nil {
		return fmt.Sprintf("it was removed at %s, and is there again: %s", l.Removed.Format(time.RFC3339), strings.Join(l.Evidence, ", "))
	}
	return "the registry does not know it, and there is evidence of it: " + strings.Join(l.Evidence, ", ")
}

// Do says what to do next.
func (l *Lost) Do() string {
	if l.Removed != nil {
		return fmt.Sprintf("run `almanac topics rm %s`, which takes it out again, or declare it with `almanac topics apply %s`", l.Topic, l.Topic)
	}
	if l.Kept && l.Unledgered {
		return "the registry, its copies and ClickHouse's copy of the ledger are lost together, so what was erased is not known; restore one of the three from a copy, or, where nothing was ever erased, run `almanac repair --nothing-erased`"
	}
	if l.Kept {
		return fmt.Sprintf("run `almanac repair %s`, which restores its descriptor", l.Topic)
	}
	return fmt.Sprintf("declare it again with `almanac topics apply %s`, then it is routed", l.Topic)
}

// String is both.
func (l *Lost) String() string { return fmt.Sprintf("topic %s: %s; %s", l.Topic, l.What(), l.Do()) }

// Lost finds the topics that the registry does not know though something speaks of them:
// head entries, checkpoints that routed frames, frames in SHARDS, tables, and messages of
// EVENTS that a router would have dealt with by now. only limits it to one topic.
//
// A message that a client published under a topic that was never declared is no
// evidence: a router keeps it as a dead letter. A frame is, since a producer reads the
// descriptor first; so is whatever waits for longer than staleAfter.
func (v *Verifier) Lost(ctx context.Context, only string) ([]Lost, error) {
	known := map[string]bool{}
	topics, err := v.reg.Skipping(func(error) {}).Topics(ctx)
	if err != nil {
		return nil, err
	}
	for i := range topics {
		known[topics[i].Name] = true
	}
	removals, err := v.reg.Removals(ctx)
	if err != nil {
		return nil, err
	}
	for name := range removals {
		if removals[name].Ended == nil { // it is on its way out, which Run names
			known[name] = true
		}
	}
	found := map[string]*Lost{}
	add := func(topic string, kept bool, format string, a ...any) {
		if known[topic] || only != "" && topic != only || schemas.ValidateTopicName(topic) != nil {
			return
		}
		l := found[topic]
		if l == nil {
			l = &Lost{Topic: topic}
			if d, removed := removals[topic]; removed {
				l.Removed = d.Ended
			}
			found[topic] = l
		}
		l.Kept = l.Kept || kept
		l.Evidence = append(l.Evidence, fmt.Sprintf(format, a...))
	}
	mentioned, err := v.reg.Mentioned(ctx)
	if err != nil {
		return nil, err
	}
	for topic := range mentioned {
		add(topic, true, "months in the registry")
	}
	routed := map[string]checkpoint.Checkpoint{} // all of a topic's
	err = streams.EachCheckpoint(ctx, v.js, schemas.SubjectsRouted, func(cp *streams.Routed) error {
		if cp.Err == nil && cp.Frames > 0 {
			all := routed[cp.Topic]
			all.Frames, all.Rows = all.Frames+cp.Frames, all.Rows+cp.Rows
			routed[cp.Topic] = all
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("verify: checkpoints: %w", err)
	}
	for topic, cp := range routed {
		add(topic, true, "checkpoints of %d frames with %d events", cp.Frames, cp.Rows)
	}
	if err := v.lostInStreams(ctx, known, removals, only, add); err != nil {
		return nil, err
	}
	made, err := v.db.LostTopics(ctx, known, v.reg.KnownShards)
	if err != nil {
		return nil, err
	}
	for _, topic := range made {
		add(topic, true, "a table in ClickHouse")
	}
	if len(found) > 0 { // one may have been declared meanwhile
		if topics, err = v.reg.Skipping(func(error) {}).Topics(ctx); err != nil {
			return nil, err
		}
		for i := range topics {
			delete(found, topics[i].Name)
		}
	}
	unledgered := false
	if len(found) > 0 {
		has, err := v.db.HasLedger(ctx)
		if err != nil {
			return nil, err
		}
		unledgered = !has
		if err := v.usedAgain(ctx, found, removals); err != nil {
			return nil, err
		}
	}
	for i := range topics {
		if d, removed := removals[topics[i].Name]; removed && d.IsBack(&topics[i]) && (only == "" || only == topics[i].Name) {
			found[topics[i].Name] = &Lost{Topic: topics[i].Name, Kept: true, Removed: d.Ended, Evidence: []string{"its descriptor, by a copy from before"}}
		}
	}
	out := make([]Lost, 0, len(found))
	for _, topic := range slices.Sorted(maps.Keys(found)) {
		found[topic].Unledgered = unledgered
		out = append(out, *found[topic])
	}
	return out, nil
}

// usedAgain tells topics that were declared under the name of a removed one from what is there again of that.
func (v *Verifier) usedAgain(ctx context.Context, found map[string]*Lost, removals map[string]registry.Removal) error {
	for name, l := range found {
		d := removals[name]
		if l.Removed == nil {
			continue
		}
		kept, err := v.db.ReadLedger(ctx)
		if err != nil {
			return err
		}
		used, err := v.reg.UsedAgain(ctx, &d, kept[schemas.TopicKey(name)].Value)
		if err != nil {
			return fmt.Errorf("verify: topic %q, which was removed: %w", name, err)
		}
		if used {
			l.Removed = nil
		}
	}
	return nil
}

// lostInStreams adds what both streams hold of topics that are not known.
func (v *Verifier) lostInStreams(ctx context.Context, known map[string]bool, removals map[string]registry.Removal, only string, add func(topic string, kept bool, format string, a ...any)) error {
	for _, s := range []struct {
		stream, filter string
		kept           bool
	}{{schemas.StreamShards, schemas.SubjectsShards, true}, {schemas.StreamEvents, schemas.SubjectsEvents, false}} {
		subjects, err := streams.Subjects(ctx, v.js, s.stream, s.filter)
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		messages := map[string]uint64{} // by topic
		for subject, n := range subjects {
			if topic := topicOf(subject); !known[topic] && (only == "" || only == topic) && schemas.ValidateTopicName(topic) == nil {
				messages[topic] += n
			}
		}
		for topic, n := range messages {
			if d, removed := removals[topic]; removed && !s.kept && d.Ended != nil {
				continue // a router takes what came late out, and counts it
			}
			real := false
			if s.kept {
				real, err = registry.Lost(ctx, v.js, topic)
			} else {
				real, err = v.waits(ctx, topic)
			}
			if err != nil {
				return err
			}
			if real {
				add(topic, s.kept, "%d messages in %s", n, s.stream)
			}
		}
	}
	return nil
}

// topicOf is the topic of a subject of EVENTS or SHARDS, unchecked.
func topicOf(subject string) string {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 4 {
		return ""
	}
	return tokens[1]
}

// staleAfter is how long a router may take to keep a message of an undeclared topic as a
// dead letter: it sweeps every few seconds, and a sweep takes a minute at most.
const staleAfter = 2 * time.Minute

// waits reports whether the first message that a topic has in EVENTS is a frame, or has
// been there for longer than staleAfter by the server's clock.
func (v *Verifier) waits(ctx context.Context, topic string) (bool, error) {
	msg, err := streams.DecideNext(ctx, v.js, schemas.StreamEvents, schemas.TopicFilter(topic), 1)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil // dealt with meanwhile
	}
	if err != nil {
		return false, fmt.Errorf("verify: %s: %w", schemas.StreamEvents, err)
	}
	if schemas.HasFrameHeaders(msg.Header) && frame.IsFramed(msg.Data) {
		return true, nil
	}
	info, err := streams.Info(ctx, v.js, schemas.StreamEvents)
	if err != nil {
		return false, err
	}
	return streams.EndOf(info).Stored-msg.Time.UnixNano() > int64(staleAfter), nil
}
