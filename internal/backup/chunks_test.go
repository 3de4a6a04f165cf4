package backup

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// shardsOf are n messages as SHARDS has them: every fifth is the checkpoint of one of two lanes, the others are frames that do not compress.
func shardsOf(n int) (all []*message) {
	r := rand.New(rand.NewPCG(1, 2))
	for seq := range uint64(n) {
		m := &message{subject: schemas.ShardSubject("app", 202611, schemas.Shard(seq%3)), seq: seq + 1, stored: int64(seq), header: []byte("NATS/1.0\r\nA: b\r\n\r\n"), data: make([]byte, 1+r.IntN(20_000))}
		if seq%5 == 4 {
			m.subject, m.data = schemas.RoutedSubject("app", string(rune('0'+seq%2))), m.data[:min(len(m.data), 200)]
		}
		for i := range m.data {
			m.data[i] = byte(r.Uint32())
		}
		all = append(all, m)
	}
	return all
}

// swept is without all but the last checkpoint of each lane, as a janitor leaves them.
func swept(all []*message) []*message {
	last := map[string]uint64{}
	for _, m := range all {
		last[m.subject] = m.seq
	}
	return slices.DeleteFunc(slices.Clone(all), func(m *message) bool { return transient(m.subject) && m.seq < last[m.subject] })
}

// bytesOf is how large messages are in an archive, about.
func bytesOf(all []*message) (n int64) {
	for _, m := range all {
		n += int64(len(m.subject)+len(m.header)+len(m.data)) + 64
	}
	return n
}

// copyOf copies messages into a store, after an earlier copy of their stream.
func copyOf(t *testing.T, s *Store, before Stream, all []*message) (made Stream) {
	t.Helper()
	c := newChunkers(&made, before, func(chunk []byte) (Object, error) { return s.Put(t.Context(), chunk) })
	for _, m := range all {
		if err := c.add(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.end(); err != nil {
		t.Fatal(err)
	}
	return made
}

// A second copy of a stream writes what is new, and of what is there already the rest of one chunk at most. It gives back the messages it was made of, in order.
func TestChunksStayTheSame(t *testing.T) {
	t.Parallel()
	all := shardsOf(4000)
	for name, c := range map[string]struct {
		before, after []*message
		most          int64 // new bytes
	}{
		"nothing changed":                      {all, all, 0},
		"the tail grew":                        {all[:3800], all, bytesOf(all[3800:]) + leastKept},
		"the tail grew by one":                 {all[:3999], all, bytesOf(all[3999:]) + leastKept},
		"checkpoints purged inside":            {all, swept(all), leastKept},
		"checkpoints purged and the tail grew": {all[:3800], swept(all), bytesOf(all[3800:]) + leastKept},
		"the beginning left":                   {all, all[700:], maxChunkBytes},
		"the last message was purged":          {all[:3800], append(slices.Clone(all[:3799]), all[3800:]...), bytesOf(all[3000:])},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := opened(t, Directory(t.TempDir()))
			first := copyOf(t, s, Stream{}, c.before)
			had := s.Added
			second := copyOf(t, s, first, c.after)
			if len(first.Chunks) < 4 || len(first.Transient) < 1 {
				t.Fatalf("%d and %d chunks", len(first.Chunks), len(first.Transient))
			}
			if added := s.Added - had; added > c.most {
				t.Errorf("%d bytes are new, want %d at most", added, c.most)
			}
			fresh := 0
			for _, chunk := range second.Chunks {
				if !slices.ContainsFunc(first.Chunks, func(b Chunk) bool { return b == chunk }) {
					fresh++
				}
			}
			if name == "the beginning left" && fresh > 1 {
				t.Errorf("%d of %d chunks are others without the first messages, want 1 at most", fresh, len(second.Chunks))
			}
			var back []*message
			if err := s.messages(t.Context(), &second, func(m *message) error { back = append(back, m); return nil }); err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(back, c.after, func(b, m *message) bool {
				return b.subject == m.subject && b.seq == m.seq && b.stored == m.stored && bytes.Equal(b.header, m.header) && bytes.Equal(b.data, m.data)
			}) {
				t.Errorf("%d messages came back of %d, or others", len(back), len(c.after))
			}
		})
	}
}

// Backups that follow each other closely do not leave a chunk for each.
func TestSmallChunksAreJoined(t *testing.T) {
	t.Parallel()
	all := shardsOf(1000)
	s := opened(t, Directory(t.TempDir()))
	var made Stream
	for n := range 1000 {
		if n%10 == 0 { // of hardly 100 kB
			made = copyOf(t, s, made, all[:n+1])
		}
	}
	whole := copyOf(t, s, Stream{}, all[:991])
	if most := int(bytesOf(all))/leastKept + 2*len(whole.Chunks); len(made.Chunks) > most || len(made.Chunks) < len(whole.Chunks) {
		t.Errorf("%d chunks, want %d to %d", len(made.Chunks), len(whole.Chunks), most)
	}
	for _, c := range made.Chunks[:len(made.Chunks)-1] {
		if ends := slices.ContainsFunc(whole.Chunks, func(w Chunk) bool { return w.Last == c.Last }); c.Size < leastKept && !ends {
			t.Errorf("the chunk that ends at %d has %d bytes, and is kept apart", c.Last, c.Size)
		}
	}
}

// What is read stops at the first error, of either series.
func TestMessagesStopAtAnError(t *testing.T) {
	t.Parallel()
	s := opened(t, Directory(t.TempDir()))
	made := copyOf(t, s, Stream{}, shardsOf(100))
	for name, of := range map[string]Stream{
		"frames":    {Chunks: append(slices.Clone(made.Chunks), Chunk{200, Object{digest(nil), 0}}), Transient: made.Transient},
		"transient": {Chunks: made.Chunks, Transient: append(slices.Clone(made.Transient), Chunk{200, Object{digest(nil), 0}})},
	} {
		if err := s.messages(t.Context(), &of, func(*message) error { return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for n := range 10 {
		seen := 0
		err := s.messages(t.Context(), &made, func(*message) error {
			if seen++; seen > n {
				return fs.ErrClosed
			}
			return nil
		})
		if !errors.Is(err, fs.ErrClosed) || seen != n+1 {
			t.Errorf("%d messages after an error at %d: %v", seen, n+1, err)
		}
	}
}
