package records

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Last is the newest record of a key in a front, by its headers; nil where what is there is not a record.
type Last struct {
	*Record
	// At is the sequence of the last message of the key, record or not.
	At uint64
	// Replaced is the sequence of a message that is not a record and took the place of what was there; 0: none did. Of
	// one that has a record's headers its body alone can tell (Suspect).
	Replaced uint64
}

// Suspect reports whether it has a record's headers, and took the place of what was there as no record does.
func (l *Last) Suspect() bool {
	return l.Record != nil && l.Replaced == l.Seq && l.Place() == nil
}

// take goes on with a key's next message.
func (l *Last) take(k *Kind, m *streams.Message) {
	l.At = m.Sequence
	replaces := schemas.Replaces(m.Header)
	switch r, err := k.Parse(m); {
	case err == nil:
		*l = Last{Record: r, At: m.Sequence}
		if replaces && r.Place() == nil {
			l.Replaced = m.Sequence
		}
	case replaces:
		*l = Last{At: m.Sequence, Replaced: m.Sequence}
	}
}

// ReadLast reads the newest record of each of a topic's keys, by subject: some 300 bytes each of documents and 700
// of timers.
func (k *Kind) ReadLast(ctx context.Context, js jetstream.JetStream, t *schemas.Topic) (map[string]Last, error) {
	return k.Walk(ctx, js, t.InFronts(), func(m *streams.Message) bool { return k.Whose(t, m.Subject) })
}

// Walk is ReadLast of those messages that keep says, of a topic (Topic.InFronts) or of any. Of a damaged one the server
// tells nothing (streams.Headers).
func (k *Kind) Walk(ctx context.Context, js jetstream.JetStream, topic string, keep func(*streams.Message) bool) (map[string]Last, error) {
	last := map[string]Last{}
	_, err := streams.Headers(ctx, js, k.Front, schemas.FrontTopicFilter(k.Front, topic), 1, func(m *streams.Message) error {
		if keep(m) {
			l := last[m.Subject]
			l.take(k, m)
			last[m.Subject] = l
		}
		return nil
	})
	return last, err
}

// ReadLastOf is ReadLast of some keys. Below a message that is not a record it reads all of the topic.
func (k *Kind) ReadLastOf(ctx context.Context, js jetstream.JetStream, t *schemas.Topic, subjects []string) (map[string]Last, error) {
	last := map[string]Last{}
	var strange []string
	err := streams.LatestOf(ctx, js, k.Front, subjects, func(m *streams.Message) error {
		l := Last{At: m.Sequence}
		if r, err := k.Parse(m); err == nil {
			l.Record = r
		} else {
			strange = append(strange, m.Subject)
		}
		last[m.Subject] = l
		return nil
	})
	if err != nil || len(strange) == 0 {
		return last, err
	}
	all, err := k.ReadLast(ctx, js, t)
	for _, subject := range strange {
		last[subject] = all[subject]
	}
	return last, err
}
