package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// maxLast is how many last messages are asked for at once; the server answers a
// request for more than 1,024 with a refusal.
const maxLast = 512

// LastMessages calls f with the last message of each subject that matches the
// filter: as they stood at one moment, unless there are more than 1,024. A KV
// watcher would not do: while a key is written it may pass it over.
func LastMessages(ctx context.Context, js jetstream.JetStream, stream, filter string, f func(*jetstream.RawStreamMsg) error) error {
	err := lastOf(ctx, js, stream, []string{filter}, f)
	if !errors.Is(err, jetstreamext.ErrBatchUnsupported) {
		return err
	}
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return err
	}
	return LastOf(ctx, js, stream, slices.Sorted(maps.Keys(info.State.Subjects)), f)
}

// LastOf is LastMessages of the subjects listed; one that has none is passed over.
func LastOf(ctx context.Context, js jetstream.JetStream, stream string, subjects []string, f func(*jetstream.RawStreamMsg) error) error {
	for some := range slices.Chunk(subjects, maxLast) {
		if err := lastOf(ctx, js, stream, some, f); err != nil {
			return err
		}
	}
	return nil
}

func lastOf(ctx context.Context, js jetstream.JetStream, stream string, subjects []string, f func(*jetstream.RawStreamMsg) error) error {
	msgs, err := jetstreamext.GetLastMsgsFor(ctx, js, stream, subjects)
	if err != nil {
		return err
	}
	pending := ""
	for msg, err := range msgs {
		if errors.Is(err, jetstreamext.ErrNoMessages) && pending == "" {
			return nil
		}
		if err != nil {
			return err
		}
		pending = LastValue(msg.Header, HeaderPending)
		if msg.Sequence, err = strconv.ParseUint(LastValue(msg.Header, jetstream.SequenceHeader), 10, 64); err != nil {
			return fmt.Errorf("the server gave a message without its number: %w", err)
		}
		if err := f(msg); err != nil {
			return err
		}
	}
	if pending != "0" {
		return errors.Join(fmt.Errorf("%w: last messages of %s", ErrCut, stream), ctx.Err())
	}
	return nil
}

// HeaderPending is how JetStream says how many messages follow one that a batch
// get brought.
const HeaderPending = "Nats-Num-Pending"
