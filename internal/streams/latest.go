package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
)

// maxLatest is how many last messages are asked for at once. The server refuses a
// request for more than 1,024.
const maxLatest = 512

// A replica that is behind the leader's end is asked again after behindPause, for
// behindTime in all. Then the leader is asked: one that was frozen answers late, and is far behind then.
const (
	behindPause = 50 * time.Millisecond
	behindTime  = time.Second
)

// Latest calls f with the last message of each subject that matches the filter: as
// they stood at one moment, unless there are more than 1,024. f is only called with
// the messages of an answer that was whole and not below the leader's end. A KV
// watcher would not do: while a key is written it may pass it over.
func Latest(ctx context.Context, js jetstream.JetStream, stream, filter string, f func(*Message) error) error {
	msgs, tooMany, err := latest(ctx, js, stream, []string{filter}, lasts{})
	if !tooMany && !unfit(err) {
		if err != nil {
			return fmt.Errorf("streams: last messages of %s in %s: %w", filter, stream, err)
		}
		return each(msgs, f)
	}
	subjects, err := Subjects(ctx, js, stream, filter)
	if err != nil {
		return err
	}
	return LatestOf(ctx, js, stream, slices.Sorted(maps.Keys(subjects)), f)
}

// LatestOf is Latest of the subjects listed. One without a message is left out.
func LatestOf(ctx context.Context, js jetstream.JetStream, stream string, subjects []string, f func(*Message) error) error {
	return latestOf(ctx, js, stream, subjects, lasts{}, f)
}

// LatestAsOf is LatestOf as it stood when the leader's end was a sequence, or later. It spares asking
// for the end.
func LatestAsOf(ctx context.Context, js jetstream.JetStream, stream string, subjects []string, end uint64, f func(*Message) error) error {
	return latestOf(ctx, js, stream, subjects, lasts{floor: end}, f)
}

// LatestAfter is LatestOf, and leaves out those whose last message is at or below a sequence. The
// server does not send those.
func LatestAfter(ctx context.Context, js jetstream.JetStream, stream string, subjects []string, after uint64, f func(*Message) error) error {
	return latestOf(ctx, js, stream, subjects, lasts{after: after}, f)
}

// lasts is which last messages are asked for: those above after, of a replica that has the stream up
// to floor; 0: up to the leader's end.
type lasts struct{ after, floor uint64 }

func latestOf(ctx context.Context, js jetstream.JetStream, stream string, subjects []string, l lasts, f func(*Message) error) error {
	for some := range slices.Chunk(subjects, maxLatest) {
		msgs, _, err := latest(ctx, js, stream, some, l)
		if unfit(err) {
			msgs, err = oneByOne(ctx, js, stream, some, l.after)
		}
		if err != nil {
			return fmt.Errorf("streams: last messages in %s: %w", stream, err)
		}
		if err := each(msgs, f); err != nil {
			return err
		}
	}
	return nil
}

// errBehind: a replica does not have yet what the leader has.
var errBehind = errors.New("a replica is behind the leader")

// unfit reports whether a replica's answer will not do, and the leader has to be asked for each subject.
func unfit(err error) bool { return errors.Is(err, errUnclear) || errors.Is(err, errBehind) }

func each(msgs []*Message, f func(*Message) error) error {
	for _, m := range msgs {
		if err := f(m); err != nil {
			return err
		}
	}
	return nil
}

// oneByOne asks the leader for each subject's last message, above a sequence.
func oneByOne(ctx context.Context, js jetstream.JetStream, stream string, subjects []string, after uint64) (out []*Message, err error) {
	for _, subject := range subjects {
		msg, err := DecideLast(ctx, js, stream, subject)
		switch {
		case errors.Is(err, jetstream.ErrMsgNotFound):
		case err != nil:
			return nil, err
		case msg.Sequence > after:
			out = append(out, msg)
		}
	}
	return out, nil
}

// latest asks a replica, until it is not behind the leader as it was at first.
func latest(ctx context.Context, js jetstream.JetStream, stream string, subjects []string, l lasts) (out []*Message, tooMany bool, err error) {
	if l.floor == 0 {
		if l.floor, err = LastSeq(ctx, js, stream); err != nil {
			return nil, false, err
		}
	}
	req := getRequest{LastOf: subjects}
	if l.after > 0 {
		req.Seq = l.after + 1
	}
	begun := time.Now()
	for failed := 0; ; {
		out = nil
		e, err := direct(ctx, js, stream, req, 2*maxLatest, func(m *Message) (bool, error) {
			out = append(out, m)
			return true, nil
		})
		switch {
		case errors.Is(err, ErrCut) && ctx.Err() == nil:
			if failed++; failed < tries {
				continue
			}
			return nil, false, err
		case err != nil:
			return nil, false, err
		case e.code == statusTooMany:
			return nil, true, nil
		case e.code == statusNone: // without a word of how far the replica is
			out, err := oneByOne(ctx, js, stream, subjects, l.after)
			return out, len(out) > 0, err
		case e.code == statusEnd && e.pending == 0 && e.upTo >= l.floor:
			return out, false, nil
		case e.pending > 0:
			return nil, false, cut(ctx, fmt.Errorf("NATS left out %d last messages", e.pending))
		case time.Since(begun) > behindTime:
			return nil, false, errBehind
		}
		if err := wait(ctx, behindPause); err != nil {
			return nil, false, err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	if backoff.Sleep(ctx, d) != nil {
		return cut(ctx, nil)
	}
	return nil
}
