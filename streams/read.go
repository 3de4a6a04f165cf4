package streams

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// Bounds of one request of Read. The server stops at the first to trip; a client
// holds that much ahead of its reader.
const (
	readMessages = 1024
	readBytes    = 8 << 20
)

// Read calls f with each message of a subject filter, from a sequence on, to the
// end as it stands when it gets there, or until f returns false. want, when not
// nil, says how many messages f will still take, to spare the stream the rest.
//
// An answer that is cut short is ErrCut, never taken for the end. Sequences are
// the server's: a publisher may set the headers that carry them in its message,
// and the server appends its own behind.
func Read(ctx context.Context, js jetstream.JetStream, stream, filter string, from uint64, want func() int, f func(*jetstream.RawStreamMsg) (bool, error)) error {
	for {
		n := readMessages
		if want != nil {
			n = max(1, min(n, want()))
		}
		msgs, err := jetstreamext.GetBatch(ctx, js, stream, n,
			jetstreamext.GetBatchSubject(filter), jetstreamext.GetBatchSeq(max(from, 1)), jetstreamext.GetBatchMaxBytes(readBytes))
		if err != nil {
			return fmt.Errorf("streams: reading %s of %s: %w", filter, stream, err)
		}
		pending := ""
		for msg, err := range msgs {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("streams: reading %s of %s: %w", filter, stream, err)
			}
			seq, err := strconv.ParseUint(LastValue(msg.Header, jetstream.SequenceHeader), 10, 64)
			if err != nil || seq < from {
				return fmt.Errorf("streams: reading %s of %s: the server gave message %d after %d", filter, stream, seq, from)
			}
			msg.Sequence = seq
			more, err := f(msg)
			if err != nil || !more {
				return err
			}
			from, pending = seq+1, LastValue(msg.Header, HeaderPending)
		}
		switch pending {
		case "0":
			return nil
		case "": // neither messages nor that there are none
			return errors.Join(fmt.Errorf("streams: reading %s of %s: %w", filter, stream, ErrCut), ctx.Err())
		}
	}
}

// LastValue is the server's value of a header: the last, behind any that the
// publisher set.
func LastValue(h nats.Header, name string) string {
	v := h[name]
	if len(v) == 0 {
		return ""
	}
	return v[len(v)-1]
}
