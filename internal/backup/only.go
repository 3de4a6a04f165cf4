package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// Only are topics that are restored, and none of the others. Nil: all.
type Only []string

// tables are those of a group that belong to the topics. The copy of the ledger names persons of all topics: it is made again from the registry.
func (o Only) tables(g *Group) []Table {
	if o == nil {
		return g.Tables
	}
	var of []Table
	for _, t := range g.Tables {
		topic, _, _ := strings.Cut(t.Name, ".") // what is derived from a topic begins with its name
		if g.Name != groupLedger && slices.Contains(o, topic) {
			of = append(of, t)
		}
	}
	return of
}

// selection says which messages are of the topics.
type selection struct {
	only   Only
	others []string // subjects of entries that other topics have in the registry and its copies
}

// Check refuses a topic that the backup does not have.
func (o Only) Check(ctx context.Context, from *Store, m *Manifest) error {
	_, err := o.selects(ctx, from, m)
	if errors.Is(err, schemas.ErrUnknownTopic) { // it was read
		return err
	}
	return from.removed(ctx, m, err, anotherBackup)
}

// selects reads which topics the registry's copy has.
func (o Only) selects(ctx context.Context, from *Store, m *Manifest) (s selection, err error) {
	s.only = o
	if o == nil {
		return s, nil
	}
	i := slices.IndexFunc(m.Streams, func(s Stream) bool { return s.Name == schemas.KVStream })
	var names []string
	prefix, removed := schemas.KVSubject(schemas.TopicKey("")), schemas.KVSubject(schemas.RemovalKey(""))
	err = from.messages(ctx, &m.Streams[i], func(m *message) error {
		for _, p := range []string{prefix, removed} {
			if name, ok := strings.CutPrefix(m.subject, p); ok && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	slices.Sort(names)
	for _, name := range o {
		if !slices.Contains(names, name) {
			return s, fmt.Errorf("%w %q: the backup has %s", schemas.ErrUnknownTopic, name, strings.Join(names, ", "))
		}
	}
	for _, name := range names {
		if slices.Contains(o, name) {
			continue
		}
		keys := slices.Concat(schemas.KeysOf(name), schemas.RememberedKeysOf(name), []string{schemas.TopicKey(name), schemas.RemovalKey(name)})
		for _, key := range keys {
			s.others = append(s.others, schemas.KVSubject(key), schemas.CopySubject(key))
		}
	}
	return s, nil
}

// keeps reports whether a message of a stream is restored. In the registry that is all but what other topics have there; in the
// other streams the second token names the topic.
func (s *selection) keeps(stream, subject string) bool {
	switch {
	case s.only == nil:
		return true
	case stream == schemas.KVStream, stream == schemas.CopiesStream:
		return !slices.ContainsFunc(s.others, func(filter string) bool { return schemas.MatchesSubject(filter, subject) })
	}
	_, rest, _ := strings.Cut(subject, ".")
	token, _, _ := strings.Cut(rest, ".")
	name, _, err := schemas.ParseFrontTopic(token)
	return err == nil && slices.Contains(s.only, name)
}

// of is a stream as it is without what is not kept, of whose messages each is read.
func (s *selection) of(stream Stream, messages func(func(*message) error) error) (Stream, error) {
	if s.only == nil {
		return stream, nil
	}
	stream.First, stream.Messages = 0, 0
	return stream, messages(func(m *message) error {
		if s.keeps(stream.Name, m.subject) {
			if stream.Messages++; stream.First == 0 {
				stream.First = m.seq
			}
		}
		return nil
	})
}
