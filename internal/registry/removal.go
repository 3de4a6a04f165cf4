package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// ErrRemoving: the topic is being removed. Its name can be used again once that has ended.
var ErrRemoving = errors.New("the topic is being removed")

// Removal is the removal of a topic. It is entered before the descriptor goes, and stays once all is gone: so that
// what producers still send under the name is known for what it is.
type Removal struct {
	// Topic as it was.
	Topic schemas.Topic `json:"topic"`
	// Before are the topics of the name that were removed earlier, each by its First, the newest MaxBefore of them.
	Before []int `json:"before,omitempty"`
	// Began and Ended are by the clock of the process that wrote them; Ended is nil while the removal is under way.
	Began time.Time  `json:"began"`
	Ended *time.Time `json:"ended,omitempty"`
	// UpTo is, for each stream, the sequence up to which it is purged: what is above may be of another life of the name.
	UpTo map[string]uint64 `json:"up_to,omitempty"`
	// Took counts what went, by where it was.
	Took map[string]uint64 `json:"took,omitempty"`
	Late Late              `json:"late,omitzero"`

	rev uint64
}

// Late is what came under the topic's name once it was gone, and was not kept.
type Late struct {
	Messages uint64    `json:"messages"`
	Events   uint64    `json:"events"`
	Last     time.Time `json:"last,omitzero"`
	// Producers that sent it, at most MaxLateProducers.
	Producers []string `json:"producers,omitempty"`
	// UpTo is the sequence of EVENTS up to which each lane is counted.
	UpTo map[string]uint64 `json:"up_to,omitempty"`
}

// MaxBefore bounds the earlier topics of a name that a removal knows.
const MaxBefore = 100

// Had reports whether a removed topic of the name is known that began with a schema version (Topic.First).
func (d *Removal) Had(first int) bool {
	return d.Topic.Name != "" && (d.Topic.First == first || slices.Contains(d.Before, first))
}

// Firsts are the removed topics of the name, each by its First.
func (d *Removal) Firsts() []int { return append(slices.Clone(d.Before), d.Topic.First) }

// next is the list of the topics before the one that is removed after d.
func (d *Removal) next(first int) []int {
	if d.Topic.Name == "" || d.Topic.First == first { // the first, or the same again
		return d.Before
	}
	before := append(slices.Clone(d.Before), d.Topic.First)
	return before[max(0, len(before)-MaxBefore):]
}

// MaxLateProducers bounds the producers that a removal names.
const MaxLateProducers = 20

func (d *Removal) key() string { return schemas.RemovalKey(d.Topic.Name) }

// Count adds a message of a lane, unless it is counted already.
func (l *Late) Count(lane string, seq, events uint64, producer string, at time.Time) {
	if seq <= l.UpTo[lane] {
		return
	}
	if l.UpTo == nil {
		l.UpTo = map[string]uint64{}
	}
	l.UpTo[lane] = seq
	l.Messages, l.Events = l.Messages+1, l.Events+max(events, 1)
	if at.After(l.Last) {
		l.Last = at.UTC()
	}
	if producer != "" && len(l.Producers) < MaxLateProducers && !slices.Contains(l.Producers, producer) {
		l.Producers = append(l.Producers, producer)
	}
}

// Removal reads the removal of a topic: ErrNotFound when it was never removed.
func (r *Registry) Removal(ctx context.Context, topic string) (Removal, error) {
	var d Removal
	if err := schemas.ValidateTopicName(topic); err != nil {
		return d, err
	}
	rev, err := r.get(ctx, schemas.RemovalKey(topic), &d)
	d.rev = rev
	return d, err
}

// Removals are the removals of all topics, by name, as the copies that the registry has know them. One that is not readable is left out.
func (r *Registry) Removals(ctx context.Context) (map[string]Removal, error) {
	if r.odd == nil {
		r = r.Skipping(func(error) {})
	}
	all, err := listNewest[Removal](ctx, r, schemas.RemovalKeys)
	out := make(map[string]Removal, len(all))
	for i := range all {
		out[all[i].Topic.Name] = all[i]
	}
	return out, err
}

// SameRemoval reports whether two entries are of one removal that stands where it stood, whatever they count.
func SameRemoval(a, b []byte) bool {
	var x, y Removal
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && x.Began.Equal(y.Began) && (x.Ended == nil) == (y.Ended == nil)
}

// IsBack reports whether a topic that is declared is the removed one: its descriptor comes from a copy from before.
func (d *Removal) IsBack(t *schemas.Topic) bool { return d.Ended != nil && !t.Earlier(d.Topic.Version) }

var errUsed = errors.New("used again")

// UsedAgain reports whether what is there under the name of a removed topic is of one that was declared since: a frame in SHARDS, or
// ClickHouse's copy of the descriptor, may be empty, has a schema version above those of the removed topic.
func (r *Registry) UsedAgain(ctx context.Context, d *Removal, copied []byte) (bool, error) {
	var t schemas.Topic
	if d.Ended == nil {
		return false, nil
	}
	if json.Unmarshal(copied, &t) == nil && t.Earlier(d.Topic.Version) {
		return true, nil
	}
	_, err := streams.Frames(ctx, r.js, schemas.ShardsFilter(d.Topic.Name), func(_ schemas.ShardRef, p schemas.Placed, _ uint64, _ time.Time) error {
		if p.Schema > d.Topic.Version {
			return errUsed
		}
		return nil
	})
	if errors.Is(err, errUsed) {
		return true, nil
	}
	return false, err
}

// Restored is a descriptor that was put together from what there is of a topic that was declared since the removal.
func (d *Removal) Restored(t schemas.Topic) schemas.Topic {
	t.First = d.Topic.Version + 1
	t.Version = max(t.Version, t.First)
	for i := range t.Fields {
		t.Fields[i].Since = max(t.Fields[i].Since, t.First)
	}
	return t
}

// AmendRemoval changes a removal by compare-and-set until f, on a fresh reading, sees nothing to change.
func (r *Registry) AmendRemoval(ctx context.Context, topic string, f func(*Removal) (changed bool)) (Removal, error) {
	for {
		d, err := r.Removal(ctx, topic)
		if err != nil || !f(&d) {
			return d, err
		}
		err = r.commit(ctx, &change{key: d.key(), rev: d.rev, v: &d})
		if err == nil || !errors.Is(err, ErrConflict) {
			return d, err
		}
	}
}

// BeginRemoval enters the removal of a topic, or returns the one that is under way. A topic that was removed and is not
// declared again is removed again: a copy from before may have been restored.
func (r *Registry) BeginRemoval(ctx context.Context, topic string, now time.Time) (Removal, error) {
	for {
		was, err := r.Removal(ctx, topic)
		if err != nil && !errors.Is(err, ErrNotFound) || err == nil && was.Ended == nil {
			return was, err
		}
		next := Removal{Began: now.UTC(), rev: was.rev}
		known := err == nil
		switch next.Topic, err = r.Topic(ctx, topic); {
		case errors.Is(err, schemas.ErrUnknownTopic) && known:
			next.Topic, next.Late = was.Topic, was.Late
		case errors.Is(err, schemas.ErrUnknownTopic):
			if _, entered := r.Removal(ctx, topic); entered == nil {
				continue // by another process, which took the descriptor out meanwhile
			}
			return next, err
		case err != nil:
			return next, err
		}
		next.Before = was.next(next.Topic.First)
		c := &change{key: next.key(), rev: next.rev, v: &next}
		if err = r.commit(ctx, c); err == nil {
			next.rev = c.rev
			return next, nil
		}
		if !errors.Is(err, ErrConflict) {
			return next, err
		}
	}
}

// ForgetTopic takes the descriptor of a topic out, whose removal was entered. It leaves a mark, which followers of topics
// see, and returns the registry's revision of it.
func (r *Registry) ForgetTopic(ctx context.Context, topic string) (rev uint64, err error) {
	key := schemas.TopicKey(topic)
	for {
		copies, err := r.copiesOf(ctx, []string{key})
		if err != nil {
			return 0, err
		}
		entry, err := r.lastOf(ctx, schemas.KVStream, schemas.KVSubject(key))
		if err != nil {
			return 0, fmt.Errorf("registry: reading %s: %w", key, err)
		}
		copied := copies[key]
		if d, err := r.Removal(ctx, topic); err != nil || d.Ended != nil {
			return 0, errors.Join(err, fmt.Errorf("%w: the removal of %q has ended", ErrConflict, topic))
		}
		if !entry.live() && !copied.live() {
			return entry.seq, nil
		}
		gone := written{count: max(entry.count, copied.count) + 1}
		m := nats.NewMsg(schemas.KVSubject(key))
		m.Header.Set("KV-Operation", "DEL")
		m.Header.Set(schemas.HeaderCount, strconv.FormatUint(gone.count, 10))
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(entry.seq, 10))
		ack, err := streams.Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) { return r.js.PublishMsg(ctx, m) })
		if streams.LostRace(err) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("registry: removing %s: %w", key, err)
		}
		return ack.Sequence, r.copyOne(ctx, key, gone, copied.seq)
	}
}

// ForgetKeys takes all keys of a removed topic out of the bucket and of its copies, up to the sequences of a fence, and
// returns those that ClickHouse may have a copy of: of these a tombstone stays.
func (r *Registry) ForgetKeys(ctx context.Context, topic string, upTo map[string]uint64) (remembered map[string]uint64, err error) {
	remembered = map[string]uint64{}
	for _, filter := range schemas.RememberedKeysOf(topic) {
		keys := map[string]written{}
		for stream, subject := range map[string]func(string) string{schemas.KVStream: schemas.KVSubject, schemas.CopiesStream: schemas.CopySubject} {
			all, err := r.allOf(ctx, stream, subject, filter)
			if err != nil && !lostStream(err) {
				return nil, fmt.Errorf("registry: listing %s: %w", filter, err)
			}
			maps.Copy(keys, all)
		}
		for key, w := range keys {
			if w.live() {
				if err := r.forgetUpTo(ctx, key, upTo[schemas.KVStream]); err != nil {
					return nil, err
				}
			}
			now, err := r.lastOf(ctx, schemas.CopiesStream, schemas.CopySubject(key))
			if err != nil {
				return nil, fmt.Errorf("registry: reading the copy of %s: %w", key, err)
			}
			remembered[key] = now.count
		}
	}
	if err := r.eachJobOf(ctx, topic, func(key string) error {
		in, err := streams.Open(ctx, r.js, schemas.KVStream)
		if err != nil {
			return fmt.Errorf("registry: %s: %w", schemas.KVStream, err)
		}
		return streams.PurgeWith(ctx, r.js, in, schemas.KVSubject(key), streams.Refuse, jetstream.WithPurgeSequence(upTo[schemas.KVStream]+1))
	}); err != nil {
		return nil, err
	}
	// The copies first: without them the bucket's entries are copied again, and without these theirs would be restored.
	for _, s := range []struct {
		stream  string
		subject func(string) string
	}{{schemas.CopiesStream, schemas.CopySubject}, {schemas.KVStream, schemas.KVSubject}} {
		in, err := streams.Open(ctx, r.js, s.stream)
		if err != nil {
			return nil, fmt.Errorf("registry: %s: %w", s.stream, err)
		}
		for _, filter := range schemas.KeysOf(topic) {
			if err := streams.PurgeWith(ctx, r.js, in, s.subject(filter), streams.Refuse, jetstream.WithPurgeSequence(upTo[s.stream]+1)); err != nil {
				return nil, fmt.Errorf("registry: forgetting %s: %w", filter, err)
			}
		}
	}
	return remembered, nil
}

// eachJobOf calls f with the key of each job that reads or writes a topic. What such a job did is of the topic that has gone: a
// replay into the name's next topic would pass over what it did.
func (r *Registry) eachJobOf(ctx context.Context, topic string, f func(key string) error) error {
	var keys []string
	err := r.scan(ctx, schemas.AllJobs, func(key string, _ uint64, value []byte) error {
		var j Job
		if json.Unmarshal(value, &j) == nil && slices.Contains(j.Topics, topic) {
			keys = append(keys, key)
		}
		return nil
	})
	for _, key := range keys {
		if err == nil {
			err = f(key)
		}
	}
	return err
}

// forgetUpTo takes an entry out of the bucket up to a sequence, and then leaves a tombstone in its copy.
func (r *Registry) forgetUpTo(ctx context.Context, key string, upTo uint64) error {
	copies, err := r.copiesOf(ctx, []string{key})
	if err != nil {
		return err
	}
	entry, err := r.lastOf(ctx, schemas.KVStream, schemas.KVSubject(key))
	if err != nil {
		return fmt.Errorf("registry: reading %s: %w", key, err)
	}
	if entry.seq > upTo {
		return nil // of the next round
	}
	in, err := streams.Open(ctx, r.js, schemas.KVStream)
	if err != nil {
		return fmt.Errorf("registry: %s: %w", schemas.KVStream, err)
	}
	if err := streams.PurgeWith(ctx, r.js, in, schemas.KVSubject(key), streams.Refuse, jetstream.WithPurgeSequence(upTo+1)); err != nil {
		return fmt.Errorf("registry: forgetting %s: %w", key, err)
	}
	copied := copies[key]
	return r.copyOne(ctx, key, written{count: max(entry.count, copied.count) + 1}, copied.seq)
}

// KeysLeft counts the entries that a topic has, but its descriptor and its removal.
func (r *Registry) KeysLeft(ctx context.Context, topic string) (n uint64, err error) {
	err = r.eachJobOf(ctx, topic, func(string) error {
		n++
		return nil
	})
	if err != nil {
		return n, err
	}
	for _, s := range []struct {
		stream  string
		subject func(string) string
	}{{schemas.CopiesStream, schemas.CopySubject}, {schemas.KVStream, schemas.KVSubject}} {
		for _, filter := range append(schemas.KeysOf(topic), schemas.RememberedKeysOf(topic)...) {
			err := streams.Latest(ctx, r.js, s.stream, s.subject(filter), func(m *streams.Message) error {
				if len(m.Data) > 0 {
					n++
				}
				return nil
			})
			if err != nil {
				return n, fmt.Errorf("registry: listing %s: %w", filter, err)
			}
		}
	}
	return n, nil
}
