package recent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// errRenumbered: a stream has another message than a reader saw there.
var errRenumbered = errors.New("the stream was restored from an older copy, or its messages were replaced, during the read; run the query again")

// frameMeta is what a reader keeps of a frame that may not be stored yet: where it
// stands and what it covers, without its payload. About 100 bytes.
type frameMeta struct {
	key          uint64 // in EVENTS its sequence, in SHARDS its position: rises along a frame index
	seq          uint64 // in its stream
	nth          uint64 // of the messages its frame index has seen
	source       schemas.Source
	minTs, maxTs int64 // unix ns
	schema       int32
	bytes        int32 // encoded
	rawBytes     int32 // decompressed
	// kept is the whole frame, while the reader still holds it; nil: it never did.
	kept *atomic.Pointer[Frame]
	// part is what a message of EVENTS has of a keyed request; nil: it is of none.
	part *schemas.GivenPart
}

// place is where the frames of a frame index are read again.
type place struct{ stream, filter string }

// Meta says where a frame is and what it covers. Snapshot.Fetch reads the frame.
type Meta struct {
	frameMeta
	place
}

// MinTs is the time of its first event, in unix ns.
func (m *Meta) MinTs() int64 { return m.minTs }

// MaxTs is the time of its last event, in unix ns.
func (m *Meta) MaxTs() int64 { return m.maxTs }

// Bytes are its size, encoded.
func (m *Meta) Bytes() int { return int(m.bytes) }

// RawBytes are its size, decompressed.
func (m *Meta) RawBytes() int { return int(m.rawBytes) }

// frameMetaOf reads a message of either stream, stored at a time in unix ns, apart from the part that it may be of a request. ok is false for what is not a frame
// with events: bare JSON, which is read once it is routed, a mark, a broken one.
func frameMetaOf(stream string, h nats.Header, seq uint64, stored int64, payloadBytes int) (out frameMeta, placed schemas.Placed, ok bool) {
	var err error
	if stream == schemas.StreamEvents {
		placed.Frame, err = schemas.ParseFrame(h)
		out.key, out.source = seq, schemas.Source{Seq: seq, Stored: stored}
	} else {
		placed, err = schemas.ParsePlaced(h)
		out.key, out.source = placed.Pos, placed.Source()
	}
	out.seq, out.minTs, out.maxTs = seq, placed.MinTs, placed.MaxTs
	out.schema, out.bytes, out.rawBytes = int32(placed.Schema), int32(payloadBytes), int32(placed.RawBytes)
	return out, placed, err == nil
}

// frameOf is the whole frame of a message of either stream.
func frameOf(stream string, msg *streams.Message) (f Frame, err error) {
	head, placed, ok := frameMetaOf(stream, msg.Header, msg.Sequence, msg.Time.UnixNano(), len(msg.Data))
	if !ok {
		return f, fmt.Errorf("%w: message %d of %s is no longer a frame", errRenumbered, msg.Sequence, stream)
	}
	return Frame{placed.Frame, msg.Data, msg.Subject, msg.Time.UnixNano(), head.source}, nil
}

// Sort sorts frames as a read meets them in a direction.
func Sort(frames []Meta, ascending bool) {
	slices.SortFunc(frames, func(a, b Meta) int {
		if ascending {
			return cmp.Compare(a.minTs, b.minTs)
		}
		return cmp.Compare(b.maxTs, a.maxTs)
	})
}
