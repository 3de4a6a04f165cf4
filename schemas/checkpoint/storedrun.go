package checkpoint

import (
	"cmp"
	"github.com/almanac-events/almanac/schemas"
	"slices"
)

// StoredRun is a run of messages of a lane above its checkpoint that ClickHouse has,
// though a message before them is still to be routed: a lane may hold several months,
// and their sinks are not equally far. A repair enters them; the router passes them
// over. Of a front's lane a router enters them too, after a fork.
type StoredRun struct {
	From uint64 `json:"f"` // sequences in the lane's stream, both inclusive
	To   uint64 `json:"t"`
	// Stored is when the stream stored message To, unix ns: a younger one has a sequence that
	// was given again.
	Stored int64 `json:"s"`
	// Frames says that only the first so many frames of the one message are stored; 0: all.
	Frames int `json:"n,omitempty"`
}

// MaxStoredRuns bounds the runs that a checkpoint names: 600 KiB.
const MaxStoredRuns = 10_000

// NoteStored adds a message of the lane behind those that were added before. joins says that
// it follows the last of them directly. It returns false when there are too many runs.
func (c *Checkpoint) NoteStored(s schemas.Source, frames int, joins bool) bool {
	if n := len(c.StoredRun); n > 0 && joins && frames == 0 && c.StoredRun[n-1].Frames == 0 {
		last := &c.StoredRun[n-1]
		last.To, last.Stored = s.Seq, max(last.Stored, s.Stored)
		return true
	}
	c.StoredRun = append(c.StoredRun, StoredRun{From: s.Seq, To: s.Seq, Stored: s.Stored, Frames: frames})
	return len(c.StoredRun) <= MaxStoredRuns
}

// Passing moves a checkpoint over the messages of its lane that follow it, in order: as long as
// each is settled it stands at the last of them. From the first that is not it stays where it is,
// and the settled ones above are entered.
type Passing struct {
	cp          *Checkpoint
	left, joins bool
}

// PassFrom has a checkpoint of a front's lane stand at a message, with nothing settled above it.
func (c *Checkpoint) PassFrom(s schemas.Source) *Passing {
	c.Stand(s)
	c.StoredRun = nil
	return &Passing{cp: c}
}

// Stand has a checkpoint stand at a message of which nothing else is known.
func (c *Checkpoint) Stand(s schemas.Source) {
	c.Source, c.Stored, c.Digest, c.At = s.Seq, s.Stored, "", 0
}

// Take takes the next message. It returns false when there are too many runs.
func (p *Passing) Take(s schemas.Source, settled bool) bool {
	switch {
	case !settled:
		p.left, p.joins = true, false
	case !p.left:
		p.cp.Stand(s)
	default:
		fits := p.cp.NoteStored(s, 0, p.joins)
		p.joins = true
		return fits
	}
	return true
}

// Left reports whether a message that was taken is to be routed.
func (p *Passing) Left() bool { return p.left }

// StoredFrames is how many of a message's frames, from the first on, are stored: all is
// returned for all of them.
func (c *Checkpoint) StoredFrames(s schemas.Source, all int) int {
	i, _ := slices.BinarySearchFunc(c.StoredRun, s.Seq, func(r StoredRun, seq uint64) int { return cmp.Compare(r.To, seq) })
	if i == len(c.StoredRun) || s.Seq < c.StoredRun[i].From || s.Stored > c.StoredRun[i].Stored {
		return 0
	}
	if n := c.StoredRun[i].Frames; n > 0 {
		return min(n, all)
	}
	return all
}

// Kept is a dead letter whose batch lost its end, and the lane's checkpoint with it: SHARDS
// was cut between the two. The message comes again, and the letter is not to.
type Kept struct {
	Seq    uint64 `json:"q"` // of the message in EVENTS
	Stored int64  `json:"s"` // when EVENTS stored it, unix ns
	Lines  string `json:"l,omitempty"`
	Events int    `json:"e"`
}

// MaxKept bounds them: a router puts some 1,000 messages into a batch.
const MaxKept = 5_000

// Keep notes a dead letter once. It returns false when there are too many.
func (c *Checkpoint) Keep(k Kept) bool {
	if !slices.Contains(c.Kept, k) {
		c.Kept = append(slices.Clone(c.Kept), k)
	}
	return len(c.Kept) <= MaxKept
}

// Keeps reports whether a dead letter of a message is kept already, and its events. lines
// are those of the message that it is made of, empty for all of it.
func (c *Checkpoint) Keeps(s schemas.Source, lines string) (events int, kept bool) {
	i := slices.IndexFunc(c.Kept, func(k Kept) bool { return k.Seq == s.Seq && k.Stored == s.Stored && k.Lines == lines })
	if i < 0 {
		return 0, false
	}
	return c.Kept[i].Events, true
}

// Pass forgets the runs and the dead letters that the checkpoint has passed.
func (c *Checkpoint) Pass() {
	c.Kept = slices.DeleteFunc(slices.Clone(c.Kept), func(k Kept) bool { return k.Seq <= c.Source })
	if len(c.Kept) == 0 {
		c.Kept = nil
	}
	c.StoredRun = slices.DeleteFunc(slices.Clone(c.StoredRun), func(r StoredRun) bool { return r.To <= c.Source })
	if len(c.StoredRun) == 0 {
		c.StoredRun = nil
	}
}
