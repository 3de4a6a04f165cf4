package checkpoint

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"github.com/almanac-events/almanac/schemas"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Checkpoint is what a lane has routed: the last message on its routed subject,
// written by routers, read by everybody. The totals count from the lane's first
// event; verify adds them up.
type Checkpoint struct {
	// Front is the stream that the lane reads, where it is not EVENTS: what is said of
	// EVENTS below is then said of it. Its messages are replaced by stubs once they are
	// stored, so that Digest is empty.
	Front string `json:"front,omitempty"`
	// Source is the sequence in EVENTS of the last message dealt with. Digest is what
	// that message was and Stored when EVENTS took it (unix ns): a sequence alone does
	// not name a message, because a stream that lost its end gives it again.
	Source uint64 `json:"source"`
	Digest string `json:"digest"`
	Stored int64  `json:"stored,omitempty"`
	// At is the sequence of the message that Digest and Stored describe, where it is
	// not Source: the messages above it could not be read.
	At uint64 `json:"at,omitempty"`
	// Era counts how often the lane found that EVENTS had lost its end and gave its
	// sequences again. Sequences of one era compare with each other, and no others.
	Era uint32 `json:"era,omitempty"`
	// Cuts are the last MaxCuts of those.
	Cuts []Cut `json:"cuts,omitempty"`
	// Router and Epoch say who wrote it; each takeover raises the epoch.
	Router string `json:"router"`
	Epoch  uint64 `json:"epoch"`

	Frames         uint64 `json:"frames"`          // frames routed
	Rows           uint64 `json:"rows"`            // events in them
	Dead           uint64 `json:"dead"`            // events kept as dead letters
	RepeatedFrames uint64 `json:"repeated_frames"` // frames refused because they came before
	RepeatedRows   uint64 `json:"repeated_rows"`   // events in them

	// Unread counts messages of EVENTS that were accepted and that the server could
	// not read when their turn came: their bytes were damaged.
	Unread uint64 `json:"unread,omitempty"`

	Windows []ProducerWindow `json:"windows,omitempty"`

	// Silent are the last messages that left nothing in SHARDS, at most MaxSilent.
	Silent []Silent `json:"silent,omitempty"`

	// Lost are frames of the lane's shards that both streams lost, at most MaxLostFrames.
	Lost []LostFrames `json:"lost,omitempty"`

	// StoredRun are messages above Source that are not to be routed, in order.
	StoredRun []StoredRun `json:"settled,omitempty"`

	// Kept are dead letters of messages above Source that SHARDS holds already.
	Kept []Kept `json:"kept,omitempty"`

	// Tails are where the shards end that the lane writes to, at most MaxTails of them:
	// should SHARDS lose the last frame of one, its position is not given again.
	Tails map[schemas.Shard]Tail `json:"tails,omitempty"`
}

// Tail is the last frame of a shard, as the lane's checkpoint remembers it.
type Tail struct {
	Pos    uint64 `json:"p"`
	Digest string `json:"d"`
	Rows   uint64 `json:"r"` // of the shard up to and with the frame
	Bytes  uint64 `json:"b"` // likewise
	Source uint64 `json:"s"` // sequence in EVENTS
	IDs    uint64 `json:"i"` // sum of their ids (IDSumSQL), likewise
}

// MaxTails bounds the shards whose ends a checkpoint remembers, 120 bytes each: a
// lane writes to one a month, and to more than two or three only while old events
// are brought in.
const MaxTails = 64

// Remember notes where a shard ends, and forgets the shard that was written to
// longest ago when there are too many.
func (c *Checkpoint) Remember(id schemas.Shard, t Tail) {
	if c.Tails == nil {
		c.Tails = map[schemas.Shard]Tail{}
	}
	c.Tails[id] = t
	if len(c.Tails) <= MaxTails {
		return
	}
	oldest := id
	for other, o := range c.Tails {
		if o.Source < c.Tails[oldest].Source {
			oldest = other
		}
	}
	delete(c.Tails, oldest)
}

// Stream is the stream that the lane reads.
func (c *Checkpoint) Stream() string { return cmp.Or(c.Front, schemas.StreamEvents) }

// LaneFilter selects the messages of the checkpoint's lane in its stream.
func (c *Checkpoint) LaneFilter(t *schemas.Topic, lane string) string {
	return t.SourceFilter(c.Front, lane)
}

// SourceOf is the message that the checkpoint stands at.
func (c *Checkpoint) SourceOf() schemas.Source {
	return schemas.Source{Seq: c.Source, Stored: c.Stored}
}

// Anchor is the sequence of the message that Digest and Stored describe.
func (c *Checkpoint) Anchor() uint64 {
	if c.At > 0 {
		return c.At
	}
	return c.Source
}

// ProducerWindow is what a lane remembers of one producer: an anti-replay window
// as IPsec has it (RFC 4303, 3.4.3).
type ProducerWindow struct {
	Producer string `json:"p"`
	// Highest is the highest sequence that came; bit i of Seen is set when
	// Highest-1-i came too.
	Highest uint64 `json:"h"`
	Seen    uint64 `json:"s"`
	// Last is the source sequence of the producer's last frame: which window goes
	// when there are too many.
	Last uint64 `json:"l"`
}

// Parse reads a checkpoint message. Each is written by compare-and-set, as its headers
// say: what any client can publish is none, whatever it holds.
func Parse(h nats.Header, data []byte) (Checkpoint, error) {
	var cp Checkpoint
	if _, ok := h[jetstream.ExpectedLastSubjSeqHeader]; !ok {
		return cp, fmt.Errorf("checkpoint is not readable: it was not written by a router, and has no %s", jetstream.ExpectedLastSubjSeqHeader)
	}
	if err := json.Unmarshal(data, &cp); err != nil {
		return cp, fmt.Errorf("checkpoint is not readable: %w", err)
	}
	return cp, nil
}

// SourceDigest is the identity of a message of EVENTS in a checkpoint: enough to
// tell it from another under the same sequence.
func SourceDigest(data []byte) string {
	return fmt.Sprintf("%08x-%d", crc32.Checksum(data, castagnoli), len(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
