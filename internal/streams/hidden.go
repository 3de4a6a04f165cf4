package streams

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/schemas"
)

// hiddenLooks and hiddenPause are how often and how far apart Hidden looks: a message
// that was stored or purged between the two counts is gone from the difference 100 ms
// later.
const (
	hiddenLooks = 5
	hiddenPause = 100 * time.Millisecond
)

// Hidden returns how many messages a stream holds that the server lists under no
// subject. nats-server does not index a subject with the byte 0x7F (stree's noPivot):
// it stores and acknowledges the message, and no list and no filter finds it again.
// EachHidden does.
func Hidden(ctx context.Context, js jetstream.JetStream, stream string) (least uint64, err error) {
	for look := range hiddenLooks {
		info, err := Info(ctx, js, stream)
		if err != nil {
			return 0, err
		}
		subjects, err := Subjects(ctx, js, stream, ">")
		if err != nil {
			return 0, err
		}
		listed := uint64(0)
		for _, n := range subjects {
			listed += n
		}
		hidden := info.State.Msgs - min(listed, info.State.Msgs)
		if look == 0 || hidden < least {
			least = hidden
		}
		if least == 0 {
			return 0, nil
		}
		if err := backoff.Sleep(ctx, hiddenPause); err != nil {
			return 0, fmt.Errorf("streams: subjects of %s: %w", stream, err)
		}
	}
	return least, nil
}

// EachHidden calls f with the headers of each message that Hidden counts. It reads the
// whole stream, without a filter.
func EachHidden(ctx context.Context, js jetstream.JetStream, stream string, f func(*Message) error) error {
	_, err := Headers(ctx, js, stream, "", 1, func(m *Message) error {
		if schemas.Indexed(m.Subject) {
			return nil
		}
		return f(m)
	})
	return err
}
