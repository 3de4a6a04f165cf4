package schemas

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// Checkpoint is what a lane has routed: the last message on its routed subject,
// written by routers, read by everybody. The totals count from the lane's first
// event; verify adds them up.
type Checkpoint struct {
	// Source is the sequence in EVENTS of the last message dealt with, and
	// Digest what that message was.
	Source uint64 `json:"source"`
	Digest string `json:"digest"`
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

// ParseCheckpoint reads a checkpoint message.
func ParseCheckpoint(data []byte) (Checkpoint, error) {
	var cp Checkpoint
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
