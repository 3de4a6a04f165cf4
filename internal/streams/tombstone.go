package streams

import (
	"context"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// Tombstone publishes what stands for a shard's purged frames: the headers of its
// last frame without its events, and why they went. LostRace when that frame is not
// the last one any more.
func Tombstone(ctx context.Context, js jetstream.JetStream, last *Message, why string) (seq uint64, err error) {
	msg := nats.NewMsg(last.Subject)
	msg.Header = CopyHeaders(last.Header)
	msg.Header.Set(schemas.HeaderCleared, why)
	msg.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(last.Sequence, 10))
	ack, err := Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) { return js.PublishMsg(ctx, msg) })
	if err != nil {
		return 0, err
	}
	return ack.Sequence, nil
}

// CopyHeaders returns the headers that may be published again. It leaves out what
// a NATS server or client acts on, and names that the client refuses to send.
func CopyHeaders(h nats.Header) nats.Header {
	out := nats.Header{}
	for k, v := range h {
		if !validName(k) || k == headerStatus || k == headerReason || len(k) >= 5 && strings.EqualFold(k[:5], "Nats-") {
			continue
		}
		out[k] = v
	}
	return out
}

// validName reports whether a header's name is a token of RFC 9110, §5.6.2.
func validName(k string) bool {
	for i := range len(k) {
		c := k[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return k != ""
}
