package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/nats-io/nats-server/v2/server/archive"
)

// The headers by which JetStream marks the messages of an atomic batch.
const (
	headerBatch  = "Nats-Batch-Id"
	headerCommit = "Nats-Batch-Commit"
)

// message is one of a stream, as the archive of a snapshot has it.
type message struct {
	subject string
	seq     uint64
	stored  int64 // unix ns
	header  []byte
	data    []byte
}

// batch is the atomic batch that the message came in, "" where it came alone, and whether it is the last of it.
func (m *message) batch() (id string, last bool) {
	id, _ = headerValue(m.header, headerBatch)
	_, last = headerValue(m.header, headerCommit)
	return id, last
}

// headerValue finds a header among those of a message as the wire has them.
func headerValue(headers []byte, name string) (value string, ok bool) {
	for line := range bytes.SplitSeq(headers, []byte("\r\n")) {
		if key, v, found := bytes.Cut(line, []byte(":")); found && string(key) == name {
			return string(bytes.TrimSpace(v)), true
		}
	}
	return "", false
}

// cutter takes the messages of a stream in order and gives them back as they were at a point in time: without what was
// stored after it, and without the beginning of an atomic batch whose end is not there.
type cutter struct {
	until time.Time            // zero: all of it
	keep  func(*message) error // is given each message that stays, in order

	held []message // of a batch that is not complete yet
	id   string    // of that batch
	over bool
	// end is the first sequence that was left out, of a cut batch its first message; 0 while none is. The copy ends before it.
	end uint64

	first, messages uint64
	stored          int64 // when the last one was
}

// add takes the next message.
func (c *cutter) add(m *message) error {
	if c.over {
		return nil
	}
	id, last := m.batch()
	if len(c.held) > 0 && id != c.id { // the last one of it was deleted since
		if err := c.complete(); err != nil {
			return err
		}
	}
	if !c.until.IsZero() && m.stored > c.until.UnixNano() {
		c.over, c.end = true, m.seq
		c.drop()
		return nil
	}
	c.held, c.id = append(c.held, *m), id
	if id == "" || last {
		return c.complete()
	}
	return nil
}

// drop leaves out a batch that is not complete.
func (c *cutter) drop() {
	if len(c.held) > 0 {
		c.end, c.held = c.held[0].seq, nil
	}
}

// open reports whether a batch has begun that is not complete.
func (c *cutter) open() bool { return len(c.held) > 0 }

// complete keeps what is held.
func (c *cutter) complete() error {
	for i := range c.held {
		m := &c.held[i]
		if c.first == 0 {
			c.first = m.seq
		}
		c.messages++
		c.stored = m.stored
		if err := c.keep(m); err != nil {
			return err
		}
	}
	c.held = c.held[:0]
	return nil
}

func writeMessage(w *archive.Writer, m *message) error {
	err := w.WriteHeader(&archive.Header{
		Name: m.subject, Sequence: m.seq, Timestamp: m.stored, HeaderSize: int64(len(m.header)), PayloadSize: int64(len(m.data)),
	})
	for _, part := range [][]byte{m.header, m.data} {
		if err == nil && len(part) > 0 {
			_, err = w.Write(part)
		}
	}
	return err
}

// maxMessage bounds what one message of an archive may say it has: NATS takes 64 MiB.
const maxMessage = 128 << 20

// readMessages calls f with the messages of an archive, to its end.
func readMessages(r *archive.Reader, f func(*message) (bool, error)) error {
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.HeaderSize > maxMessage || h.PayloadSize > maxMessage {
			return fmt.Errorf("%w: a message of %d bytes", ErrSnapshot, h.HeaderSize+h.PayloadSize)
		}
		m := message{subject: h.Name, seq: h.Sequence, stored: h.Timestamp}
		body := make([]byte, h.HeaderSize+h.PayloadSize)
		if len(body) > 0 {
			if _, err := io.ReadFull(r, body); err != nil {
				return err
			}
		}
		m.header, m.data = body[:h.HeaderSize:h.HeaderSize], body[h.HeaderSize:]
		if more, err := f(&m); err != nil || !more {
			return err
		}
	}
}
