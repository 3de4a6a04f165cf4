package schemas

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
)

// Frame is what a frame says of itself in its headers: the producer's part.
type Frame struct {
	Rows     int    // events
	RawBytes int    // bytes of the decompressed block
	MinTs    int64  // unix ns
	MaxTs    int64  // unix ns
	Schema   int    // schema version of the topic
	Producer string // who made it; empty when a router made it of bare JSON
	Seq      uint64 // counts from 1 per producer, topic and lane
}

// SetHeaders writes the producer's headers.
func (f *Frame) SetHeaders(h nats.Header) {
	h.Set(HeaderRows, strconv.Itoa(f.Rows))
	h.Set(HeaderBytes, strconv.Itoa(f.RawBytes))
	h.Set(HeaderMinTs, strconv.FormatInt(f.MinTs, 10))
	h.Set(HeaderMaxTs, strconv.FormatInt(f.MaxTs, 10))
	h.Set(HeaderSchema, strconv.Itoa(f.Schema))
	if f.Producer != "" {
		h.Set(HeaderProducer, f.Producer)
		h.Set(HeaderSeq, strconv.FormatUint(f.Seq, 10))
	}
}

// HasFrameHeaders says whether a message claims to be a frame: any of the
// producer's headers does. Without one it is bare JSON.
func HasFrameHeaders(h nats.Header) bool {
	for _, k := range []string{HeaderRows, HeaderBytes, HeaderMinTs, HeaderMaxTs, HeaderSchema, HeaderProducer, HeaderSeq} {
		if _, ok := h[k]; ok {
			return true
		}
	}
	return false
}

// EventsOf is how many events a message stands for by its rows header; one
// without is one event.
func EventsOf(h nats.Header) int {
	if n, err := strconv.Atoi(h.Get(HeaderRows)); err == nil && n > 0 {
		return n
	}
	return 1
}

// IsBlank says whether a message of EVENTS stands for nothing. One with a payload
// never does, whatever it claims.
func IsBlank(h nats.Header, data []byte) bool {
	_, ok := h[HeaderBlank]
	return ok && len(data) == 0
}

// ParseFrame reads the producer's headers. It checks their form and limits, not
// whether they are true: frame.Reader.Check does.
func ParseFrame(h nats.Header) (Frame, error) {
	var p headerParser
	f := Frame{
		Rows:     int(p.uint(h, HeaderRows, MaxFrameRows)),
		RawBytes: int(p.uint(h, HeaderBytes, MaxFrameRawBytes)),
		MinTs:    p.int(h, HeaderMinTs),
		MaxTs:    p.int(h, HeaderMaxTs),
		Schema:   int(p.uint(h, HeaderSchema, 1<<31-1)),
		Producer: h.Get(HeaderProducer),
	}
	if f.Producer != "" {
		f.Seq = p.uint(h, HeaderSeq, 1<<63)
		if p.err == nil && (f.Seq == 0 || len(f.Producer) > MaxProducerBytes) {
			p.err = fmt.Errorf("%w: producer %q with seq %d; the name has at most %d bytes and the seq counts from 1", ErrFrameHeaders, f.Producer, f.Seq, MaxProducerBytes)
		}
	}
	if p.err == nil && f.Rows == 0 {
		p.err = fmt.Errorf("%w: %s is 0", ErrFrameHeaders, HeaderRows)
	}
	return f, p.err
}

// MaxProducerBytes bounds a producer's name: the router keeps it in every
// checkpoint. Almanac's own are 16 hex digits.
const MaxProducerBytes = 64

// Placed is what the router adds to a frame: its place in a shard.
type Placed struct {
	Frame
	Pos uint64 // 1, 2, 3 … inside the shard
	// SourceFirst is the sequence of the first record, of a frame made of a run of records
	// of a front; 0 of others. SourceSeq and SourceTime are then of the last.
	SourceFirst uint64
	SourceSeq   uint64 // stream sequence in EVENTS
	SourceTime  int64  // unix ns when EVENTS stored that message
	SourceEra   uint32 // Checkpoint.Era of its lane when it was routed
	Prev        string // Digest of the frame at Pos-1; empty at 1
	ShardRows   uint64 // rows of the shard up to and with this frame
	ShardBytes  uint64 // encoded bytes, likewise
	ShardIDs    uint64 // the sum of their ids (IDSumSQL), likewise
	// Cleared is why the frame's events were taken out, its headers alone left to
	// mark the shard's end; empty for a frame.
	Cleared string
}

// NoLane is the lane of a shard whose id names none that its topic has.
const NoLane = -1

// SetHeaders writes all headers of a placed frame.
func (p *Placed) SetHeaders(h nats.Header) {
	p.Frame.SetHeaders(h)
	h.Set(HeaderPos, strconv.FormatUint(p.Pos, 10))
	if p.SourceFirst != 0 {
		h.Set(HeaderSourceFirst, strconv.FormatUint(p.SourceFirst, 10))
	}
	h.Set(HeaderSourceSeq, strconv.FormatUint(p.SourceSeq, 10))
	h.Set(HeaderSourceTime, strconv.FormatInt(p.SourceTime, 10))
	if p.SourceEra != 0 {
		h.Set(HeaderSourceEra, strconv.FormatUint(uint64(p.SourceEra), 10))
	}
	h.Set(HeaderPrev, p.Prev)
	h.Set(HeaderShardRows, strconv.FormatUint(p.ShardRows, 10))
	h.Set(HeaderShardBytes, strconv.FormatUint(p.ShardBytes, 10))
	h.Set(HeaderShardIDs, formatIDSum(p.ShardIDs))
	if p.Cleared != "" {
		h.Set(HeaderCleared, p.Cleared)
	}
}

// ParsePlaced reads the headers of a frame in SHARDS.
func ParsePlaced(h nats.Header) (Placed, error) {
	f, err := ParseFrame(h)
	if err != nil {
		return Placed{}, err
	}
	var p headerParser
	out := Placed{
		Frame:      f,
		Pos:        p.uint(h, HeaderPos, 1<<63),
		SourceSeq:  p.uint(h, HeaderSourceSeq, 1<<63),
		SourceTime: p.int(h, HeaderSourceTime),
		Prev:       h.Get(HeaderPrev),
		ShardRows:  p.uint(h, HeaderShardRows, 1<<63),
		ShardBytes: p.uint(h, HeaderShardBytes, 1<<63),
		Cleared:    h.Get(HeaderCleared),
	}
	if _, ok := h[HeaderSourceFirst]; ok {
		out.SourceFirst = p.uint(h, HeaderSourceFirst, 1<<63)
	}
	if _, ok := h[HeaderSourceEra]; ok {
		out.SourceEra = uint32(p.uint(h, HeaderSourceEra, 1<<32-1))
	}
	var ok bool
	if out.ShardIDs, ok = parseIDSum(h.Get(HeaderShardIDs)); p.err == nil && !ok {
		p.err = fmt.Errorf("%w: %s is %q, it must be 16 hex digits", ErrFrameHeaders, HeaderShardIDs, h.Get(HeaderShardIDs))
	}
	if p.err == nil && out.Pos == 0 {
		p.err = fmt.Errorf("%w: %s is 0, positions count from 1", ErrFrameHeaders, HeaderPos)
	}
	if p.err == nil && out.ShardRows < uint64(out.Rows) {
		p.err = fmt.Errorf("%w: %s is %d, a frame of %d rows cannot make the shard less", ErrFrameHeaders, HeaderShardRows, out.ShardRows, out.Rows)
	}
	return out, p.err
}

// DigestBytes is the length of the checksum in front of a frame.
const DigestBytes = 16

// Digest is the identity of a frame's bytes: the 128-bit checksum that
// ClickHouse's framing puts in front of them, in hex. Each frame of a shard
// names its predecessor's, so that a stream which lost its tail and reused the
// numbers cannot pass for the one it was.
func Digest(payload []byte) string {
	if len(payload) < DigestBytes {
		return ""
	}
	return hex.EncodeToString(payload[:DigestBytes])
}

// headerParser keeps the first error, so that a header reads as a list.
type headerParser struct{ err error }

func (p *headerParser) uint(h nats.Header, key string, limit uint64) uint64 {
	v, err := strconv.ParseUint(h.Get(key), 10, 64)
	if p.err == nil && (err != nil || v > limit) {
		p.err = fmt.Errorf("%w: %s is %q, it must be a number up to %d", ErrFrameHeaders, key, h.Get(key), limit)
	}
	return v
}

func (p *headerParser) int(h nats.Header, key string) int64 {
	v, err := strconv.ParseInt(h.Get(key), 10, 64)
	if p.err == nil && err != nil {
		p.err = fmt.Errorf("%w: %s is %q, it must be a number", ErrFrameHeaders, key, h.Get(key))
	}
	return v
}

// EventsFrame is the message that brings a frame to EVENTS under its producer and sequence.
func EventsFrame(topic string, m Month, lane int, f Frame, payload []byte) *nats.Msg {
	msg := nats.NewMsg(EventsSubject(topic, m, lane))
	f.SetHeaders(msg.Header)
	msg.Header.Set(nats.MsgIdHdr, MsgID(f.Producer, topic, lane, f.Seq))
	msg.Data = payload
	return msg
}
