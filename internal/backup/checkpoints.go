package backup

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/almanac-events/almanac/schemas"
)

// errNoCheckpoint means that a lane's checkpoint was purged while SHARDS was copied.
var errNoCheckpoint = fmt.Errorf("%w %s", ErrSnapshot, schemas.StreamShards)

// checkpoints follows the lanes of SHARDS. A router writes frames in one batch with the lane's checkpoint, which is its end. A copy in which that is
// missing after a lane's last frame cannot be routed on.
type checkpoints struct {
	frames, ends map[string]uint64 // the last of each, by lane
}

// see takes a message that is copied, in order.
func (c *checkpoints) see(m *message) {
	if c.frames == nil {
		c.frames, c.ends = map[string]uint64{}, map[string]uint64{}
	}
	if topic, lane, ok := schemas.RoutedTokens(m.subject); ok {
		if name, _, err := schemas.ParseFrontTopic(topic); err == nil {
			c.ends[name+"."+lane] = m.seq
		}
		return
	}
	if id, _ := m.batch(); id == "" {
		return // a tombstone, or a frame that a repair wrote
	}
	if ref, err := schemas.ParseShardSubject(m.subject); err == nil {
		c.frames[ref.Topic+"."+strconv.Itoa(ref.ID.Lane())] = m.seq
	}
}

// missing names a lane without its checkpoint.
func (c *checkpoints) missing() error {
	var lanes []string
	for lane, seq := range c.frames {
		if c.ends[lane] < seq {
			lanes = append(lanes, lane)
		}
	}
	if len(lanes) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the checkpoint of lane %s was purged while it was copied: run it again", errNoCheckpoint, slices.Min(lanes))
}
