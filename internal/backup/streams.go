package backup

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// streams copies the streams, in their order. base is the backup before, nil where there is none.
func (c *Config) streams(ctx context.Context, js jetstream.JetStream, m, base *Manifest) error {
	if err := c.stream(ctx, js, m, base, schemas.CopiesStream, keyed()); err != nil {
		return err
	}
	// The registry may have been quiet: its last message is to be of now, for it names the point.
	_, err := streams.Asked(ctx, js.Conn(), func(ctx context.Context) (*jetstream.PubAck, error) {
		return js.Publish(ctx, schemas.KVSubject(schemas.LeaseKey(schemas.RoleProbe, "backup")), []byte("{}"))
	})
	if err != nil {
		return fmt.Errorf("backup: naming the point in time: %w", err)
	}
	if err := c.stream(ctx, js, m, base, schemas.KVStream, keyed()); err != nil {
		return err
	}
	m.Point = m.Streams[len(m.Streams)-1].LastTime
	m.Fronts = m.Point
	for _, front := range []string{schemas.StreamDocs, schemas.StreamTimers} {
		if err := c.stream(ctx, js, m, base, front, keyed()); err != nil {
			return err
		}
		if t := m.Streams[len(m.Streams)-1].LastTime; t.After(m.Fronts) {
			m.Fronts = t
		}
	}
	for _, log := range []string{schemas.StreamEvents, schemas.StreamShards} {
		if err := c.stream(ctx, js, m, base, log, upTo(m.Point)); err != nil {
			return err
		}
	}
	return nil
}

// extent is how far a stream is copied.
type extent struct {
	until time.Time
	keyed bool
}

// upTo is a log, as it was at a point in time.
func upTo(t time.Time) extent { return extent{until: t} }

// keyed is a stream of which the last message of each subject counts: as it is when the copy ends.
func keyed() extent { return extent{keyed: true} }

// stream copies one stream.
func (c *Config) stream(ctx context.Context, js jetstream.JetStream, m, base *Manifest, name string, to extent) error {
	s := Stream{Name: name}
	staged, err := openStage(ctx, c.Store, c.Files)
	if err != nil {
		return err
	}
	defer staged.close(ctx)
	chunks := newChunkers(&s, base.stream(name), func(chunk []byte) (Object, error) { return staged.put(ctx, chunk) })
	var read int64
	var lanes checkpoints
	cut := cutter{until: to.until, keep: func(m *message) error {
		if name == schemas.StreamShards {
			lanes.see(m)
		}
		read += int64(len(m.header) + len(m.data))
		c.tell("stream "+name, read)
		return chunks.add(m)
	}}
	got, err := snapshot(ctx, c.NC, name, cut.add)
	if err == nil && to.keyed {
		got.last, err = catchUp(ctx, js, name, got.last, &cut)
	}
	if err == nil {
		err = chunks.end()
	}
	if err == nil {
		err = staged.send(ctx)
	}
	if err != nil {
		return err
	}
	if err := lanes.missing(); err != nil {
		return err
	}
	cut.drop()
	s.Config, s.First, s.Messages = got.config, cut.first, cut.messages
	s.Last = got.last // also where its message is gone: the number is not given again
	if cut.end != 0 {
		s.Last = cut.end - 1
	}
	if cut.stored != 0 {
		s.LastTime = time.Unix(0, cut.stored).UTC()
	}
	m.Streams = append(m.Streams, s)
	return nil
}

// maxRounds bounds how often the messages are read that came while the ones before were read. One round is mostly enough.
const maxRounds = 100

// catchUp reads what came after a snapshot of a keyed stream began. A newer message of a key takes the older one's place, so the
// snapshot may have neither. What came since is read in rounds, until one lacks none: whatever was replaced before
// that round began, was replaced by a message of it or of a round before. Then each key has its last message, as of the end of that round.
func catchUp(ctx context.Context, js jetstream.JetStream, stream string, from uint64, cut *cutter) (last uint64, err error) {
	for range maxRounds {
		end, err := streams.LastSeq(ctx, js, stream)
		if err != nil {
			return 0, err
		}
		n := uint64(0)
		if end > from {
			err = streams.Gather(ctx, js, stream, ">", from+1, nil, func(m *streams.Message) (bool, error) {
				if m.Sequence > end {
					return false, nil
				}
				n++
				return m.Sequence < end, cut.add(&message{m.Subject, m.Sequence, m.Time.UnixNano(), wire(m.Header), bytes.Clone(m.Data)})
			})
			if err != nil {
				return 0, err
			}
		}
		if n == end-from && !cut.open() {
			return end, nil
		}
		from = end
	}
	return 0, fmt.Errorf("%w %s: it changes faster than it is read; try again when less is written", ErrSnapshot, stream)
}

// wire is headers as they stand in a message.
func wire(h nats.Header) []byte {
	if len(h) == 0 {
		return nil
	}
	var b bytes.Buffer
	b.WriteString("NATS/1.0\r\n")
	for _, key := range slices.Sorted(maps.Keys(h)) {
		for _, v := range h[key] {
			b.WriteString(key + ": " + v + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}
