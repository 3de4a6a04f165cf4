package producer

import (
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// squeeze chooses how each frame is compressed while the topic leaves that to its
// producers (schemas.CompressionAuto). ZSTD takes about twice LZ4's time here and
// about half its bytes, and what is behind (NATS, which writes each byte twice, the
// network, the disk) pays for bytes. So it is ZSTD, but where events wait for their
// encoding and for nothing else.
type squeeze struct {
	behind atomic.Int64 // when a frame was last encoded with too many waiting, in unix ns
	stream atomic.Bool  // the stream holds events back: streamHolds, of the sender's last pass
}

// squeezeHold is how long LZ4 stays once it was needed: ClickHouse takes one kind
// an insert, so frames of both in one second cost whoever inserts them.
const squeezeHold = 2 * time.Second

// choose is what a frame is compressed with that is encoded at now, while so many
// closed frames wait to be encoded.
func (s *squeeze) choose(topic *schemas.Topic, unencoded int, now time.Time) schemas.Compression {
	if unencoded > maxUnencoded {
		s.behind.Store(now.UnixNano())
	}
	holds := encodingHolds(now.Sub(time.Unix(0, s.behind.Load())), s.stream.Load())
	return topic.FrameCompression().Frame(holds)
}

// encodingHolds decides: callers of Log had to encode (maxUnencoded) within the last
// squeezeHold, and it is not the stream that events wait for: fewer bytes bring its
// answers sooner.
func encodingHolds(sinceBehind time.Duration, streamHolds bool) bool {
	return sinceBehind < squeezeHold && !streamHolds
}

// streamHolds decides it from what the sender found: an encoded frame that may not be
// sent before others are answered, or an eighth of the buffer sent and not answered,
// with all answers heard. A stream that keeps up with a producer at full speed has some
// five frames unanswered, of two thousand events in 100,000.
func streamHolds(held bool, unanswered, bufferEvents int) bool {
	return held || unanswered*schemas.FrameRows > bufferEvents/8
}
