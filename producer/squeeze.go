package producer

import (
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// squeeze chooses how each frame is compressed while the topic leaves that to its
// producers (schemas.CompressionAuto). ZSTD takes about 1.5 times LZ4's time here
// and half its bytes, and what is behind (NATS, which writes each byte twice, the
// network, the disk) pays for bytes. So it is ZSTD, but where events wait for their
// encoding and for nothing else.
type squeeze struct {
	since  atomic.Int64 // when callers of Log began to encode, in unix ns; 0: they do not
	behind atomic.Int64 // when they last did
	stream atomic.Bool  // the stream holds events back: streamHolds, of the sender's last pass
}

const (
	// squeezeAfter is how long callers must have had to encode before frames are LZ4. It
	// is as many events as the buffer holds: a shorter burst fills it, and goes on at the
	// stream's rate.
	squeezeAfter = 100 * time.Millisecond
	// squeezeHold is how long LZ4 stays once it was needed: ClickHouse takes one kind
	// an insert, so frames of both in one second cost whoever inserts them.
	squeezeHold = 2 * time.Second
)

// choose is what a frame is compressed with that is encoded at now, while so many
// closed frames wait to be encoded.
func (s *squeeze) choose(topic *schemas.Topic, unencoded int, now time.Time) schemas.Compression {
	stream, ns := s.stream.Load(), now.UnixNano()
	if unencoded > maxUnencoded && !stream {
		s.since.CompareAndSwap(0, ns)
		s.behind.Store(ns)
	}
	since := s.since.Load()
	holds := since != 0 && encodingHolds(time.Duration(ns-since), time.Duration(ns-s.behind.Load()), stream)
	if since != 0 && (stream || ns-s.behind.Load() >= int64(squeezeHold)) {
		s.since.Store(0)
	}
	return topic.FrameCompression().Frame(holds)
}

// encodingHolds decides, from when callers of Log first had to encode (maxUnencoded)
// and last, and from whether it is the stream that events wait for: then fewer bytes
// bring its answers sooner.
func encodingHolds(sinceFirst, sinceLast time.Duration, streamHolds bool) bool {
	return sinceFirst >= squeezeAfter && sinceLast < squeezeHold && !streamHolds
}

// streamHolds decides it from what the sender found: an encoded frame that may not be
// sent before others are answered, or an eighth of the buffer sent and not answered,
// with all answers heard. A stream that keeps up with a producer at full speed has some
// five frames unanswered, of two thousand events in 100,000.
func streamHolds(held bool, unanswered, bufferEvents int) bool {
	return held || unanswered*schemas.FrameRows > bufferEvents/8
}
