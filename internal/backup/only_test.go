package backup

import (
	"errors"
	"fmt"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// registryOf keeps the copy of a registry that has entries under these keys.
func registryOf(t *testing.T, s *Store, keys ...string) *Manifest {
	t.Helper()
	m := example()
	for i := range m.Streams {
		if m.Streams[i].Name != schemas.KVStream {
			continue
		}
		c := chunker{keep: func(chunk []byte, last uint64) error {
			o, err := s.Put(t.Context(), chunk)
			m.Streams[i].Chunks = append(m.Streams[i].Chunks, Chunk{last, o})
			return err
		}}
		for n, key := range keys {
			if err := c.add(&message{subject: schemas.KVSubject(key), seq: uint64(n + 1)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Of one topic alone its messages are restored, in each stream, and no other topic's; of the registry what belongs to no topic too.
func TestOnlyKeepsTheTopicsMessages(t *testing.T) {
	t.Parallel()
	s, err := OpenStore(t.Context(), Directory(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(t.Context()) }()
	m := registryOf(t, s, schemas.TopicKey("app"), schemas.TopicKey("web"), schemas.RemovalKey("old"), schemas.EngineKey)
	if err := (Only{"app", "nope"}).Check(t.Context(), s, m); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Errorf("an unknown topic: %v", err)
	}
	only, err := Only{"app"}.selects(t.Context(), s, m)
	if err != nil {
		t.Fatal(err)
	}
	all, err := Only(nil).selects(t.Context(), s, m)
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ stream, subject string }
	of := func(topic string) (out []place) {
		month, _ := schemas.ParseMonth("2026-11")
		front := schemas.FrontTopic(topic, 3)
		out = append(out, place{schemas.StreamEvents, schemas.EventsSubject(topic, month, 0)}, place{schemas.StreamShards, schemas.ShardSubject(topic, month, 7)},
			place{schemas.StreamShards, schemas.RoutedSubject(topic, "0")}, place{schemas.StreamShards, schemas.GivenSubject(topic, "0")}, place{schemas.StreamShards, schemas.DeadSubject(topic)},
			place{schemas.StreamDocs, schemas.DocSubject(topic, 0, "x")}, place{schemas.StreamDocs, schemas.DocSubject(front, 0, "x")})
		for _, key := range []string{
			schemas.TopicKey(topic), schemas.RemovalKey(topic), schemas.HeadKey(topic, month), schemas.ShardKey(topic, month, 7), schemas.LedgerKey(topic, "e"),
			schemas.ErasureRecordKey(topic, month, 7), schemas.CopyKey(topic, "0"), schemas.SealKey(topic, 1), schemas.ReadUpToKey(topic), schemas.LettersKey(topic),
		} {
			out = append(out, place{schemas.KVStream, schemas.KVSubject(key)}, place{schemas.CopiesStream, schemas.CopySubject(key)})
		}
		return out
	}
	for topic, want := range map[string]bool{"app": true, "web": false, "old": false} {
		for _, p := range of(topic) {
			if got := only.keeps(p.stream, p.subject); got != want {
				t.Errorf("%s of %s: kept %v", p.subject, p.stream, got)
			}
			if !all.keeps(p.stream, p.subject) {
				t.Errorf("%s of %s is left out where all are restored", p.subject, p.stream)
			}
		}
	}
	for _, key := range []string{schemas.EngineKey, schemas.EndKey(schemas.StreamEvents)} {
		if !only.keeps(schemas.KVStream, schemas.KVSubject(key)) {
			t.Errorf("%s, which is of no topic, is left out", key)
		}
	}
	part, err := only.of(Stream{Name: schemas.StreamEvents, First: 1, Last: 9, Messages: 3}, func(f func(*message) error) error {
		for seq, topic := range map[uint64]string{2: "web", 5: "app", 8: "web"} {
			if err := f(&message{subject: schemas.TopicFilter(topic), seq: seq}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || part.First != 5 || part.Messages != 1 || part.Last != 9 {
		t.Errorf("the part of a stream: %+v, %v", part, err)
	}
}

// Of one topic alone its table and what is derived from it are restored. The copy of the ledger is not: it names persons of all topics.
func TestOnlyTakesTheTopicsTables(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		group string
		names []string
		want  string
	}{
		{groupLedger, []string{schemas.TableLedger}, "[]"},
		{groupDerived, []string{"app.series", "apple.series", "web.app"}, "[app.series]"},
		{groupTopics, []string{"app", "apple", "web"}, "[app]"},
	} {
		g := Group{Name: c.group}
		for _, n := range c.names {
			g.Tables = append(g.Tables, Table{Name: n})
		}
		var got []string
		for _, table := range (Only{"app"}).tables(&g) {
			got = append(got, table.Name)
		}
		if fmt.Sprint(got) != c.want || len(Only(nil).tables(&g)) != len(c.names) {
			t.Errorf("%s: %v, want %s", c.group, got, c.want)
		}
	}
}
