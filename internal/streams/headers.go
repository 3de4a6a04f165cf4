package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// headersBatch bounds the headers asked for at once, at about 600 bytes each.
const headersBatch = 2000

// Headers calls f with the headers of a stream's messages under a filter, from a
// sequence on, to the end as it stands now. Nil means complete, as in Gather.
//
// A NATS server checks each message's checksum when it reads it. It passes over a
// damaged one without a word, though it counts it. unread is how many it counted
// and did not give: damaged ones, and those purged meanwhile.
func Headers(ctx context.Context, js jetstream.JetStream, stream, filter string, from uint64, f func(*Message) error) (unread uint64, err error) {
	unread, err = headers(ctx, js, stream, Range{Filter: filter, From: max(from, 1), HeadersOnly: true}, f)
	return unread, wrapHeaders(stream, filter, err)
}

// LastHeaders returns the headers of the last message of each subject under a
// filter, in the stream's order, and the subjects whose last message cannot be read.
func LastHeaders(ctx context.Context, js jetstream.JetStream, stream, filter string) (heads []*Message, unread []string, err error) {
	heads, unread, err = lastHeaders(ctx, js, stream, filter)
	return heads, unread, wrapHeaders(stream, filter, err)
}

func lastHeaders(ctx context.Context, js jetstream.JetStream, stream, filter string) (heads []*Message, unread []string, err error) {
	have := map[string]int{} // index in heads
	missing, err := headers(ctx, js, stream, Range{Filter: filter, LastPerSubject: true, HeadersOnly: true}, func(m *Message) error {
		if at, ok := have[m.Subject]; ok { // a newer one came meanwhile
			heads[at] = m
			return nil
		}
		have[m.Subject] = len(heads)
		heads = append(heads, m)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if missing == 0 {
		return heads, nil, nil
	}
	// What was counted and not given may be damaged: the leader tells, by subject.
	subjects, err := Subjects(ctx, js, stream, filter)
	if err != nil {
		return nil, nil, err
	}
	for _, subject := range slices.Sorted(maps.Keys(subjects)) {
		if _, ok := have[subject]; ok {
			continue
		}
		m, err := DecideLast(ctx, js, stream, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
			unread = append(unread, subject)
		case err != nil:
			return nil, nil, err
		default:
			m.Data = nil
			heads = append(heads, m)
		}
	}
	return heads, unread, nil
}

func wrapHeaders(stream, filter string, err error) error {
	var own *refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own.error
	}
	return fmt.Errorf("streams: reading headers of %s in %s: %w", filter, stream, err)
}

// refusal is an error of the caller's own function, which goes to it as it is.
type refusal struct{ error }

// headers reads a range, again from where it was cut, and then asks the leader
// whether that was all. Of last messages it gives those that came meanwhile too:
// they stand for their subjects.
func headers(ctx context.Context, js jetstream.JetStream, stream string, r Range, f func(*Message) error) (unread uint64, err error) {
	end, err := LastSeq(ctx, js, stream)
	if err != nil {
		return 0, err
	}
	last, next := r.LastPerSubject, r.From
	take := func(m *Message) error {
		if m.Sequence > end && !last {
			return nil
		}
		if next = m.Sequence + 1; !schemas.Indexed(m.Subject) && r.Filter != "" {
			return nil // of no filter: the server gave it by mistake
		}
		if err := f(m); err != nil {
			return &refusal{err}
		}
		return nil
	}
	left, failed := uint64(0), 0 // left: counted and not given, damaged or still to come
	for {
		before := next
		counted, stillLeft, err := pullAll(ctx, js, stream, r, end, take)
		unread, left = unread+left-min(left, counted), stillLeft
		if next > before {
			failed = 0
			// Of last messages too: those that are left have higher sequences.
			r.From, r.LastPerSubject = next, false
		}
		if err != nil && errors.Is(err, ErrCut) && ctx.Err() == nil {
			if failed++; failed < tries {
				continue
			}
		}
		if err != nil {
			return 0, err
		}
		m, err := DecideNext(ctx, js, stream, r.Filter, max(next, 1))
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Sequence > end:
			return unread + left, nil
		case err != nil:
			return 0, err
		}
		m.Data = nil // the consumer's replica does not have what the leader has
		if err := take(m); err != nil {
			return 0, err
		}
		r.From, r.LastPerSubject, left = next, false, left-min(left, 1)
	}
}

// pullAll reads a range to its end as it stands, and up to sequence end at least,
// by the server's word: that nothing follows the last message, or that there is
// nothing to give. counted is what the server counted of the range at first, left
// what it still counted at the end.
func pullAll(ctx context.Context, js jetstream.JetStream, stream string, r Range, end uint64, take func(*Message) error) (counted, left uint64, err error) {
	p, err := newPuller(ctx, js, stream, r, headersBatch)
	if err != nil {
		return 0, 0, err
	}
	defer p.close()
	if left = p.pending; left == 0 {
		return 0, 0, nil
	}
	beyond, waited, asked := 0, time.Duration(0), headersBatch
	for {
		if asked == headersBatch {
			if err := p.request(pullRequest{Batch: headersBatch, NoWait: true}); err != nil {
				return p.pending, left, err
			}
			asked = 0
		}
		m, s, err := p.next(ctx, silence)
		switch {
		case err != nil:
			return p.pending, left, err
		case m != nil:
			m.Size, left = sizeOf(m.Header), m.Pending
			if asked++; m.Sequence > end {
				beyond++
			}
			if err := take(m); err != nil {
				return p.pending, left, err
			}
			if left == 0 || beyond > headersBatch && p.got >= p.pending {
				return p.pending, 0, nil // a stream that grows faster than it is read ends here too
			}
		case s.code == statusNoResponders: // the consumer is not known yet on the way to it
			if waited += behindPause; waited > silence {
				return p.pending, left, cut(ctx, nats.ErrNoResponders)
			}
			if err := wait(ctx, behindPause); err != nil {
				return p.pending, left, err
			}
			asked = headersBatch
		case s.code == statusNone || s.code == statusPartial:
			return p.pending, left, nil
		case s.code != statusHeartbeat:
			return p.pending, left, cut(ctx, errors.New("NATS answered "+s.code+" "+s.reason))
		}
	}
}

// statusPartial ends a request of which part was given.
const statusPartial = "408"

// Frames calls f with the headers of every frame of a topic's shards that SHARDS
// holds, in the stream's order; what is not a frame is skipped.
func Frames(ctx context.Context, js jetstream.JetStream, filter string, f func(ref schemas.ShardRef, p schemas.Placed, seq uint64, at time.Time) error) (unread uint64, err error) {
	return FramesFrom(ctx, js, filter, 1, f)
}

// FramesFrom is Frames from a sequence on.
func FramesFrom(ctx context.Context, js jetstream.JetStream, filter string, from uint64, f func(ref schemas.ShardRef, p schemas.Placed, seq uint64, at time.Time) error) (unread uint64, err error) {
	return Headers(ctx, js, schemas.StreamShards, filter, from, func(msg *Message) error {
		ref, err := schemas.ParseShardSubject(msg.Subject)
		if err != nil {
			return nil
		}
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil {
			return nil
		}
		return f(ref, p, msg.Sequence, msg.Time)
	})
}
