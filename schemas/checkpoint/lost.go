package checkpoint

import (
	"cmp"
	"fmt"
	"github.com/almanac-events/almanac/schemas"
	"slices"
)

// LostFrames are positions of a shard whose frames both streams lost, and that were
// not in ClickHouse either: their events are gone for good.
type LostFrames struct {
	Shard schemas.Shard `json:"shard"`
	Month schemas.Month `json:"month"`
	From  uint64        `json:"from"`
	To    uint64        `json:"to"`
	// Rows is how many events they had; 0: not known.
	Rows uint64 `json:"rows"`
	// Found is when a repair met it, unix ns.
	Found int64 `json:"found"`
}

// MaxLostFrames bounds the losses that a checkpoint tells apart, 150 bytes each. Beyond
// it the oldest two of a shard are joined, or else the oldest goes.
const MaxLostFrames = 64

// AddLost notes a loss once: a repair that was killed does it again.
func (c *Checkpoint) AddLost(f LostFrames) {
	if slices.ContainsFunc(c.Lost, func(o LostFrames) bool { return o.Shard == f.Shard && o.From <= f.From && f.To <= o.To }) {
		return
	}
	c.Lost = append(slices.Clone(c.Lost), f)
	if len(c.Lost) <= MaxLostFrames {
		return
	}
	for i := 1; i < len(c.Lost); i++ {
		if o := c.Lost[i]; o.Shard == c.Lost[0].Shard {
			c.Lost[0].From, c.Lost[0].To = min(c.Lost[0].From, o.From), max(c.Lost[0].To, o.To)
			c.Lost[0].Rows += o.Rows
			c.Lost = slices.Delete(c.Lost, i, i+1)
			return
		}
	}
	c.Lost = slices.Delete(c.Lost, 0, 1)
}

// Copy is what the registry keeps of a lane's checkpoint: how far the lane was routed and
// where its shards ended, for when SHARDS loses both. It has no windows, which are most
// of a checkpoint's bytes.
func (c *Checkpoint) Copy() Checkpoint {
	return Checkpoint{
		Front: c.Front, Source: c.Source, Digest: c.Digest, Stored: c.Stored, At: c.At, Era: c.Era, Router: c.Router, Epoch: c.Epoch,
		Frames: c.Frames, Rows: c.Rows, Dead: c.Dead, Tails: cloneTails(c.Tails),
	}
}

func cloneTails(tails map[schemas.Shard]Tail) map[schemas.Shard]Tail {
	out := make(map[schemas.Shard]Tail, len(tails))
	for id, t := range tails {
		out[id] = t
	}
	return out
}

// Forgets reports whether a checkpoint is older than what the registry's copy knows: SHARDS
// lost its end, and the lane's checkpoint with it.
func (c *Checkpoint) Forgets(known *Checkpoint) bool {
	return cmp.Or(cmp.Compare(known.Era, c.Era), cmp.Compare(known.Source, c.Source)) > 0
}

// BothLost says that SHARDS forgot what EVENTS does not hold any more.
func (c *Checkpoint) BothLost(known *Checkpoint, misfit string) string {
	return fmt.Sprintf("%s lost its end: the lane was routed up to message %d of %s, and its checkpoint says %d; and %s", schemas.StreamShards, known.Source, known.Stream(), c.Source, misfit)
}

// StreamEnd is a message at the end of a stream that the registry remembers: should the
// stream lose it before any router saw it, no other place tells that it was there.
type StreamEnd struct {
	Stream string `json:"stream"`
	Seq    uint64 `json:"seq"`
	// First was the stream's first message then: what is below had been purged.
	First uint64 `json:"first,omitempty"`
	// Stored is when the stream stored message Seq, unix ns. Gone: the message was not
	// there any more when this was noted, and Stored is the time of the note.
	Stored int64 `json:"stored"`
	Gone   bool  `json:"gone,omitempty"`
	// Cuts are the last MaxCuts losses of the stream's end.
	Cuts []Cut `json:"cuts,omitempty"`
}

// Point is the end as a checkpoint that stands there: what tells a stream that lost its
// end under a checkpoint tells it under a remembered end.
func (e *StreamEnd) Point() Checkpoint { return Checkpoint{Source: e.Seq, Stored: e.Stored} }

// Misfit says why a stream is not the one whose end is remembered, or "".
func (e *StreamEnd) Misfit(s SourceAt) string {
	switch {
	case e.Seq == 0:
		return ""
	case s.LastSeq < e.Seq:
		return fmt.Sprintf("%s ends at message %d and had %d", e.Stream, s.LastSeq, e.Seq)
	case s.Found && (e.Gone || s.Stored != e.Stored):
		return fmt.Sprintf("message %d of %s is not the one that was there", e.Seq, e.Stream)
	}
	return ""
}

// Cut adds a loss, and forgets the oldest of too many.
func (e StreamEnd) Cut(c Cut) StreamEnd {
	e.Cuts = append(slices.Clone(e.Cuts[max(0, len(e.Cuts)-MaxCuts+1):]), c)
	return e
}
