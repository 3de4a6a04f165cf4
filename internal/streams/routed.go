package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Routed is the checkpoint of a lane as SHARDS holds it.
type Routed struct {
	checkpoint.Checkpoint
	// Subject names topic and lane.
	Subject, Topic, Lane string
	// Seq is its message in SHARDS. 0: the lane was never routed.
	Seq uint64
	// Err tells why the message is not a checkpoint; Checkpoint is zero then.
	Err error
}

func routed(msg *Message) *Routed {
	r := &Routed{Subject: msg.Subject, Seq: msg.Sequence}
	r.Topic, r.Lane, _ = schemas.RoutedTokens(msg.Subject)
	if r.Checkpoint, r.Err = checkpoint.Parse(msg.Header, msg.Data); r.Err != nil {
		r.Checkpoint = checkpoint.Checkpoint{}
	}
	return r
}

// Checkpoint reads the checkpoint on a routed subject, as the stream's leader has it.
func Checkpoint(ctx context.Context, js jetstream.JetStream, subject string) (*Routed, error) {
	msg, err := DecideLast(ctx, js, schemas.StreamShards, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		r := &Routed{Subject: subject}
		r.Topic, r.Lane, _ = schemas.RoutedTokens(subject)
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("streams: checkpoint %s: %w", subject, err)
	}
	return routed(msg), nil
}

// EachCheckpoint calls f with the checkpoint of each lane under a filter:
// schemas.RoutedFilter of a topic, or schemas.SubjectsRouted.
func EachCheckpoint(ctx context.Context, js jetstream.JetStream, filter string, f func(*Routed) error) error {
	return Latest(ctx, js, schemas.StreamShards, filter, func(msg *Message) error { return f(routed(msg)) })
}

// Checkpoints reads how far each lane of a topic is routed, by lane token. What is
// not a checkpoint is left out: the router reports it.
func Checkpoints(ctx context.Context, js jetstream.JetStream, topic string) (map[string]checkpoint.Checkpoint, error) {
	out := map[string]checkpoint.Checkpoint{}
	err := EachCheckpoint(ctx, js, schemas.RoutedFilter(topic), func(r *Routed) error {
		if r.Err == nil {
			out[r.Lane] = r.Checkpoint
		}
		return nil
	})
	return out, err
}

// Misfits returns the lanes whose checkpoint EVENTS does not fit, with the reason:
// those that their routers do not go on with before that is settled. A checkpoint that
// was read before its router settled it is read again, and replaced in routed.
func Misfits(ctx context.Context, js jetstream.JetStream, t *schemas.Topic, routed map[string]checkpoint.Checkpoint) (map[string]string, error) {
	out := map[string]string{}
	for lane, cp := range routed {
		why, err := Misfit(ctx, js, cp.LaneFilter(t, lane), &cp)
		if err != nil {
			return nil, err
		}
		if why != "" {
			out[lane] = why
		}
	}
	if len(out) == 0 {
		return out, nil
	}
	now, err := Checkpoints(ctx, js, t.Name)
	if err != nil {
		return nil, err
	}
	for lane := range out {
		cp := now[lane]
		if out[lane], err = Misfit(ctx, js, cp.LaneFilter(t, lane), &cp); err != nil {
			return nil, err
		}
		if routed[lane] = cp; out[lane] == "" {
			delete(out, lane)
		}
	}
	return out, nil
}

// Everything is a fence that no message lies above.
var Everything = schemas.Source{Seq: math.MaxUint64}

// Unrouted counts a topic's events above the checkpoints and up to a fence, by
// their headers. lanes is how many checkpoints there are when every lane has been
// routed; with fewer the stream is read from its beginning. In lanes of misfits, whose
// checkpoints EVENTS does not fit, what is younger than the checkpoint waits. The events
// of a topic with a front are the records there, and of a fence in EVENTS its time counts.
func Unrouted(ctx context.Context, js jetstream.JetStream, t *schemas.Topic, routed map[string]checkpoint.Checkpoint, misfits map[string]string, upTo schemas.Source) (uint64, error) {
	b, err := Waiting(ctx, js, t, routed, misfits, upTo)
	return b.Events, err
}

// Backlog is what waits for a router.
type Backlog struct {
	Events uint64
	// Bytes are those of the messages that have them, without subjects and headers.
	Bytes uint64
	// First is when the first of them was accepted; zero: there is none.
	First time.Time
}

// Waiting is Unrouted with the bytes of what waits, and since when.
func Waiting(ctx context.Context, js jetstream.JetStream, t *schemas.Topic, routed map[string]checkpoint.Checkpoint, misfits map[string]string, upTo schemas.Source) (b Backlog, err error) {
	from := uint64(math.MaxUint64)
	for _, cp := range routed {
		from = min(from, cp.Source)
	}
	if len(routed) < t.Lanes || len(misfits) > 0 {
		from = 0
	}
	front := t.Front()
	if front != "" {
		upTo.Seq = math.MaxUint64
	}
	_, err = Headers(ctx, js, cmp.Or(front, schemas.StreamEvents), t.SourceTopicFilter(front), from, func(msg *Message) error {
		lane, ok := schemas.SourceLane(front, msg.Subject)
		if !ok || !(schemas.Source{Seq: msg.Sequence, Stored: msg.Time.UnixNano()}).UpTo(upTo) || schemas.IsBlank(msg.Header, nil) {
			return nil
		}
		if front != "" && !schemas.IsEvent(msg.Header, msg.Size) {
			return nil
		}
		if cp := routed[lane]; msg.Sequence <= cp.Source && (misfits[lane] == "" || cp.Stored == 0 || msg.Time.UnixNano() <= cp.Stored) {
			return nil
		}
		if cp := routed[lane]; cp.StoredFrames(schemas.Source{Seq: msg.Sequence, Stored: msg.Time.UnixNano()}, math.MaxInt) == math.MaxInt {
			return nil
		}
		b.Events += uint64(schemas.EventsOf(msg.Header))
		if b.Bytes += uint64(msg.Size); b.First.IsZero() {
			b.First = msg.Time
		}
		return nil
	})
	return b, err
}

// SayWaiting tells sinks that a reader waits until SQL has what the topics were given, so
// that they do not take the time that sql_fresh allows. What becomes of it does not
// matter: without it the reader waits for longer.
func SayWaiting(js jetstream.JetStream, topics ...string) {
	for _, t := range topics {
		_ = js.Conn().Publish(schemas.WaitingSubject(t), nil)
	}
}
