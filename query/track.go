package query

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

// errTurned: a stream has other messages than a reader saw there.
var errTurned = errors.New("the stream was put back or its messages replaced meanwhile; ask again")

// track is the headings of one lane of EVENTS, or of one shard of SHARDS, from
// some key on. Each query advances it: it reads what came since the last, by its
// messages when they are few and by their headers alone when they are many.
//
// It is a copy and decides nothing: a track that does not reach back as far as a
// query needs is begun anew, and so is one whose stream was put back.
type track struct {
	place
	dir  *directory
	turn chan struct{} // held by who uses the fields below

	from     uint64 // every frame with a key from here on, read so far, is in headings
	next     uint64 // sequence to read next; 0: nowhere yet
	nth      uint64
	headings []heading // keys rise
	last     *tail     // in SHARDS: the last frame or mark seen
	begun    time.Time // when the last reading that came to the end began
	epoch    uint64    // the connection's outages, as they were then
	// Headings up to marked go when a mark is set the next time: a query that began
	// before may still need them.
	marked   uint64
	markedAt time.Time
}

const (
	// nearFrames are read with their payloads; where more are waiting than
	// farFrames, headers alone are read.
	nearFrames = 16
	farFrames  = 64
	// trackLinger is how long headings stay behind what is routed or stored. A query
	// that takes longer reads anew.
	trackLinger = 5 * time.Second
)

// hold waits for the turn.
func (t *track) hold(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		if now := t.dir.epoch(); now != t.epoch { // who knows what the server has now
			t.clear()
			t.epoch = now
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *track) release() { <-t.turn }

// clear forgets everything.
func (t *track) clear() {
	t.dir.headings.Add(-int64(len(t.headings)))
	t.from, t.next, t.headings, t.last, t.begun, t.marked = 0, 0, nil, nil, time.Time{}, 0
}

// begin lets the track start at a key that stands at or behind a sequence.
func (t *track) begin(from, next uint64) {
	t.clear()
	t.from, t.next = from, max(next, 1)
}

// advance reads to the end, as it stands after since.
func (t *track) advance(ctx context.Context, r *Reader, since time.Time) error {
	if t.begun.After(since) {
		return nil
	}
	began, left := time.Now(), uint64(nearFrames-1)
	err := registry.Read(ctx, r.js, t.stream, t.filter, t.next, func() int { return int(left) + 1 }, func(msg *jetstream.RawStreamMsg) (bool, error) {
		if err := t.add(&message{msg.Subject, msg.Header, msg.Sequence, len(msg.Data)}, msg); err != nil {
			return false, err
		}
		var err error
		left, err = strconv.ParseUint(registry.LastValue(msg.Header, registry.HeaderPending), 10, 64)
		return left <= farFrames, err
	})
	if err == nil && left > farFrames {
		err = scanHeaders(ctx, r.stream(t.stream), t.filter, jetstream.DeliverByStartSequencePolicy, t.next, func(msg jetstream.Msg, seq uint64) error {
			return t.add(&message{msg.Subject(), msg.Headers(), seq, payloadSize(msg.Headers())}, nil)
		})
	}
	if err != nil {
		// What was read so far stands; only the end was not reached.
		if errors.Is(err, errUntracked) {
			t.clear()
		}
		return err
	}
	t.begun = began
	return nil
}

// message is one of a stream, with its payload or without.
type message struct {
	subject string
	header  map[string][]string
	seq     uint64
	bytes   int
}

// add takes the next message; whole has its payload, if it came with one.
func (t *track) add(m *message, whole *jetstream.RawStreamMsg) error {
	t.next, t.nth = m.seq+1, t.nth+1
	h, placed, ok := headingOf(t.stream, m.header, m.seq, m.bytes)
	if !ok {
		return nil
	}
	if t.stream == schemas.StreamShards {
		last := tail{Placed: placed, subject: m.subject, seq: m.seq}
		var err error
		if last.topic, last.month, last.shard, err = schemas.ParseShardSubject(m.subject); err != nil {
			return nil
		}
		if t.last != nil && placed.Pos <= t.last.Pos && placed.Cleared == "" {
			return errUntracked
		}
		t.last = &last
	}
	if placed.Cleared != "" || h.key < t.from {
		return nil
	}
	if t.dir.headings.Add(1) > maxHeadings {
		t.dir.headings.Add(-1)
		return errUntracked
	}
	h.nth = t.nth
	if whole != nil {
		if f, err := freshFrameOf(t.stream, whole); err == nil {
			h.kept = t.dir.keep(f)
		}
	}
	t.headings = append(t.headings, h)
	return nil
}

// above are the frames with a key above floor that meet the range.
func (t *track) above(floor uint64, lo, hi int64) []due {
	i, _ := slices.BinarySearchFunc(t.headings, floor+1, func(h heading, key uint64) int {
		switch {
		case h.key < key:
			return -1
		case h.key > key:
			return 1
		}
		return 0
	})
	var out []due
	for _, h := range t.headings[i:] {
		if h.maxTs >= lo && h.minTs <= hi {
			out = append(out, due{h, t.place})
		}
	}
	return out
}

// passed hears that everything up to a key is routed, or stored: in a while its
// headings go.
func (t *track) passed(upTo uint64, now time.Time) {
	if now.Sub(t.markedAt) < trackLinger {
		return
	}
	n := 0
	for n < len(t.headings) && t.headings[n].key <= t.marked {
		n++
	}
	if n > 0 {
		t.headings = slices.Clone(t.headings[n:]) // a slice of it would keep them all
		t.dir.headings.Add(-int64(n))
	}
	t.from = max(t.from, t.marked+1)
	t.marked, t.markedAt = max(t.marked, upTo), now
}
