package backup

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"math"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"

	"github.com/almanac-events/almanac/schemas"
)

// chunkBytes is how large the chunks of a stream are on average, maxChunkBytes at most but for one message.
const (
	chunkBytes    = 4 << 20
	maxChunkBytes = 32 << 20
)

// leastKept is how large a chunk of the backup before is at least for the next one to end a chunk where that one does. A smaller
// one is written again with what came since: so backups that follow each other closely do not leave a file for each.
const leastKept = 64 << 10

// ends reports whether a chunk ends with a message. It goes by the message alone, the more likely the larger it is: where old
// messages leave a stream, later chunks stay what they were.
func ends(m *message) bool {
	size := len(m.subject) + len(m.header) + len(m.data) + 32
	return crc32.ChecksumIEEE(binary.LittleEndian.AppendUint64(nil, m.seq))%chunkBytes < uint32(min(size, chunkBytes))
}

// chunker makes chunks of messages: each is an archive, compressed. It ends them where those of the backup before ended, too: the last
// one of that was still open, and is not written again with what came since.
type chunker struct {
	before []Chunk // of the backup before, in order
	keep   func(chunk []byte, last uint64) error

	raw  bytes.Buffer
	w    *archive.Writer
	last uint64
}

func (c *chunker) add(m *message) error {
	if c.passes(m.seq) {
		if err := c.end(); err != nil {
			return err
		}
	}
	if c.w == nil {
		c.w = archive.NewWriter(&c.raw)
	}
	if err := writeMessage(c.w, m); err != nil {
		return err
	}
	c.last = m.seq
	if ends(m) || c.raw.Len() >= maxChunkBytes {
		return c.end()
	}
	return nil
}

// passes reports whether a chunk of the backup before ended below a message. That chunk's last message may have been purged since.
func (c *chunker) passes(seq uint64) (ended bool) {
	for len(c.before) > 0 && c.before[0].Last < seq {
		ended = ended || c.before[0].Size >= leastKept
		c.before = c.before[1:]
	}
	return ended
}

// end gives out the last chunk.
func (c *chunker) end() error {
	if c.w == nil {
		return nil
	}
	chunk := s2.Encode(nil, c.raw.Bytes())
	c.raw.Reset()
	c.w = nil
	return c.keep(chunk, c.last)
}

// chunkers are those of the two series of a stream.
type chunkers struct{ lasting, transient chunker }

// newChunkers makes chunkers that go by the copy before, and add what they make to another.
func newChunkers(to *Stream, before Stream, put func(chunk []byte) (Object, error)) *chunkers {
	into := func(series *[]Chunk) func([]byte, uint64) error {
		return func(chunk []byte, last uint64) error {
			o, err := put(chunk)
			*series = append(*series, Chunk{last, o})
			return err
		}
	}
	return &chunkers{chunker{before: before.Chunks, keep: into(&to.Chunks)}, chunker{before: before.Transient, keep: into(&to.Transient)}}
}

func (c *chunkers) add(m *message) error {
	if transient(m.subject) {
		return c.transient.add(m)
	}
	return c.lasting.add(m)
}

// transient reports whether messages of a subject are purged soon from between others that stay: in SHARDS the checkpoints of a lane but
// for the last, within seconds, and what a lane was given of keyed requests, within minutes. No other stream has these subjects.
func transient(subject string) bool {
	_, _, checkpoint := schemas.RoutedTokens(subject)
	_, given := schemas.GivenTopic(subject)
	return checkpoint || given
}

func (c *chunkers) end() error {
	if err := c.lasting.end(); err != nil {
		return err
	}
	return c.transient.end()
}

// chunkMessages calls f with the messages of a chunk.
func chunkMessages(chunk []byte, f func(*message) error) error {
	if n, err := s2.DecodedLen(chunk); err != nil || n > maxChunkBytes+2*maxMessage {
		return fmt.Errorf("%w: a chunk that says it has %d bytes", ErrDamaged, n)
	}
	raw, err := s2.Decode(nil, chunk)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return readMessages(archive.NewReader(bytes.NewReader(raw)), func(m *message) (bool, error) { return true, f(m) })
}

// messages calls f with the messages of a stream's copy, in order.
func (s *Store) messages(ctx context.Context, of *Stream, f func(*message) error) error {
	next, stop := iter.Pull2(s.inChunks(ctx, of.Transient))
	defer stop()
	passing, failed, more := next()
	upTo := func(seq uint64) error {
		for ; more && (failed != nil || passing.seq < seq); passing, failed, more = next() {
			if failed != nil {
				return failed
			}
			if err := f(passing); err != nil {
				return err
			}
		}
		return nil
	}
	for m, err := range s.inChunks(ctx, of.Chunks) {
		if err == nil {
			err = upTo(m.seq)
		}
		if err == nil {
			err = f(m)
		}
		if err != nil {
			return err
		}
	}
	return upTo(math.MaxUint64)
}

// inChunks are the messages of chunks, in order. An error is the last of them.
func (s *Store) inChunks(ctx context.Context, chunks []Chunk) iter.Seq2[*message, error] {
	return func(yield func(*message, error) bool) {
		for _, c := range chunks {
			chunk, err := s.Read(ctx, c.Object)
			if err == nil {
				err = chunkMessages(chunk, func(m *message) error {
					if !yield(m, nil) {
						return errStopped
					}
					return nil
				})
			}
			if errors.Is(err, errStopped) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// errStopped ends the reading of a chunk of which no more is asked.
var errStopped = errors.New("enough was read")
