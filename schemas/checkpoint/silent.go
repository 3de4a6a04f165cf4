package checkpoint

import "slices"

// Silent is a message of a lane that was dealt with and has nothing in SHARDS: a frame
// that came before, a mark that stands for nothing, or frames that a purge took. Should EVENTS lose it with its end,
// nothing else tells that it is not missed.
type Silent struct {
	Seq    uint64 `json:"seq"`
	Stored int64  `json:"stored"` // unix ns when EVENTS stored it
}

// MaxSilent bounds what a checkpoint remembers of them, at 45 bytes each: a producer that
// gets no answer sends again what was in flight, and a cut takes the youngest messages.
const MaxSilent = 128

// PassSilent notes a message that left nothing, once, and forgets the oldest of too many.
func (c *Checkpoint) PassSilent(m Silent) {
	n := len(c.Silent)
	if n > 0 && m.Stored <= c.Silent[n-1].Stored {
		return // dealt with again, after a cut
	}
	c.Silent = append(slices.Clone(c.Silent[max(0, n-MaxSilent+1):]), m)
}
