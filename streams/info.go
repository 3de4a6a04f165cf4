package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// LastSeq returns the last sequence of a stream, by its leader.
func LastSeq(ctx context.Context, js jetstream.JetStream, stream string) (uint64, error) {
	info, err := Info(ctx, js, stream)
	if err != nil {
		return 0, err
	}
	return info.State.LastSeq, nil
}

// EndOf is a stream's end as its leader described it: the last sequence, and the time
// then. Every message up to there was stored by that time, unless the clock was set back.
func EndOf(info *jetstream.StreamInfo) schemas.Source {
	at := info.TimeStamp
	if last := info.State.LastTime; last.After(at) {
		at = last
	}
	return schemas.Source{Seq: info.State.LastSeq, Stored: at.UnixNano()}
}

// Subjects lists the subjects of a stream that match a filter, with how many
// messages each has.
func Subjects(ctx context.Context, js jetstream.JetStream, stream, filter string) (map[string]uint64, error) {
	info, err := Info(ctx, js, stream, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, err
	}
	return info.State.Subjects, nil
}

// Info describes a stream, by its leader.
func Info(ctx context.Context, js jetstream.JetStream, stream string, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	var err error
	for range tries {
		var info *jetstream.StreamInfo
		if info, err = ask(ctx, js, stream, opts...); err == nil {
			return info, nil
		}
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		err = cut(ctx, err)
	}
	return nil, fmt.Errorf("streams: %s: %w", stream, err)
}

// ask bounds the wait: nats.go waits as long as ctx, when that has an end.
func ask(ctx context.Context, js jetstream.JetStream, stream string, opts ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	s, err := js.Stream(ctx, stream)
	if err != nil || len(opts) == 0 {
		if err != nil {
			return nil, err
		}
		return s.CachedInfo(), nil
	}
	return s.Info(ctx, opts...)
}
