package repair

import (
	"encoding/hex"
	"time"

	"github.com/almanac-events/almanac/internal/reconcile"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// link is one frame of a shard by its headers: about 160 bytes.
type link struct {
	pos, rows             uint64
	shardRows, shardBytes uint64 // up to and with this frame
	source                uint64 // sequence in EVENTS
	stored                int64  // unix ns when EVENTS stored it; 0: not known
	first                 uint64 // schemas.Placed.SourceFirst
	era                   uint32 // of its lane's checkpoint: sources of one era compare
	seq                   uint64 // in SHARDS; 0: SHARDS does not hold it, EVENTS does
	nth                   int    // of the frames of its message in EVENTS
	minTs, maxTs          int64
	at                    int64  // unix ns when SHARDS stored it
	raw                   uint64 // bytes decompressed
	schema                int
	prev                  [16]byte // digest of the frame before it
	ids                   uint64   // sum of the ids of the shard up to and with this frame; of a candidate, of its own
	// cleared is why only the mark of the frame is left: its events are gone on
	// purpose, and may not come back.
	cleared string
}

func newLink(p schemas.Placed, seq uint64, at time.Time) link {
	l := link{
		pos: p.Pos, rows: uint64(p.Rows), shardRows: p.ShardRows, shardBytes: p.ShardBytes, source: p.SourceSeq, stored: p.SourceTime, first: p.SourceFirst, era: p.SourceEra,
		seq: seq, minTs: p.MinTs, maxTs: p.MaxTs, raw: uint64(p.RawBytes), schema: p.Schema, at: at.UnixNano(),
		cleared: p.Cleared, ids: p.ShardIDs,
	}
	l.prev = digest(p.Prev)
	return l
}

// from is schemas.Placed.Source.
func (l *link) from() schemas.Source {
	return (&schemas.Placed{SourceFirst: l.first, SourceSeq: l.source, SourceTime: l.stored}).Source()
}

// digest is the bytes of what schemas.Digest gives; zero for "".
func digest(s string) (d [16]byte) {
	if b, err := hex.DecodeString(s); err == nil {
		copy(d[:], b)
	}
	return d
}

// chain is the frames of a shard that are known, by position. A position that is
// not in it was purged, or is damaged.
type chain []link

// add takes the next frame in the stream's order. A position that stands already
// is not taken twice: sinks stop there, and verify names it.
func (c chain) add(l link) chain {
	if len(c) > 0 && l.pos <= c[len(c)-1].pos {
		return c
	}
	return append(c, l)
}

func (c chain) first() *link { return &c[0] }
func (c chain) last() *link  { return &c[len(c)-1] }

// at is the index of a position, or of the first above it.
func (c chain) at(pos uint64) int {
	lo, hi := 0, len(c)
	for lo < hi {
		if m := (lo + hi) / 2; c[m].pos < pos {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// upTo is the rows of the shard up to a position, when the frames tell: from the
// frame there, or from the one behind it.
func (c chain) upTo(pos uint64) (rows uint64, ok bool) {
	if pos == 0 {
		return 0, true
	}
	i := c.at(pos)
	switch {
	case i < len(c) && c[i].pos == pos:
		return c[i].shardRows, true
	case i < len(c) && c[i].pos == pos+1:
		return c[i].shardRows - c[i].rows, true
	}
	return 0, false
}

// gap is positions between two frames that are missing: after is the index of
// the frame behind them.
type gap struct {
	from, to uint64
	after    int
}

// gaps are the positions missing between frames; those before the first frame
// were purged, or are gone like the others: the frames do not tell.
func (c chain) gaps() []gap {
	var out []gap
	for i := 1; i < len(c); i++ {
		if c[i].pos > c[i-1].pos+1 {
			out = append(out, gap{c[i-1].pos + 1, c[i].pos - 1, i})
		}
	}
	return out
}

// front is the gap between a head and the first frame that is held, when there is
// one: ClickHouse was restored from an older copy, and SHARDS is purged below what it had then. behind
// is the chain with what stands for the frame at the head, of which only the rows
// up to it are known.
func (c chain) front(head, rows, ids uint64) (g gap, behind chain, ok bool) {
	if len(c) == 0 || c.first().pos <= head+1 || c.first().cleared != "" {
		return gap{}, nil, false
	}
	behind = append(chain{{pos: head, shardRows: rows, ids: ids}}, c...)
	return gap{head + 1, c.first().pos - 1, 1}, behind, true
}

// back is the gap behind the last frame that is held, up to where the lane's
// checkpoint has the shard's end. upTo is the chain with what stands for the frame to
// come there, which would name the last one.
func (c chain) back(known checkpoint.Tail, cp checkpoint.Checkpoint) (g gap, upTo chain) {
	if len(c) == 0 {
		upTo = chain{{}}
	}
	upTo = append(upTo, c...)
	last := upTo.last()
	g = gap{last.pos + 1, known.Pos, len(upTo)}
	return g, append(upTo, link{pos: known.Pos + 1, shardRows: known.Rows, shardBytes: known.Bytes, ids: known.IDs, prev: digest(known.Digest), source: cp.Source, era: cp.Era, at: last.at})
}

// rowsOf is the rows of a gap, from its two neighbours.
func (c chain) rowsOf(g gap) uint64 {
	return c[g.after].shardRows - c[g.after].rows - c[g.after-1].shardRows
}

// between are the frames above lo and up to hi, and whether none is missing.
func (c chain) between(lo, hi uint64) (frames []link, whole bool) {
	i, j := c.at(lo+1), c.at(hi+1)
	for i < j && c[j-1].cleared != "" { // only a shard's last can be a mark
		j--
	}
	return c[i:j], uint64(j-i) == hi-lo
}

// frames are a chain's as they are compared with rows.
func (c chain) frames() []reconcile.Frame {
	out := make([]reconcile.Frame, len(c))
	for i := range c {
		out[i] = reconcile.Frame{Pos: c[i].pos, Rows: c[i].rows, ShardRows: c[i].shardRows, ShardIDs: c[i].ids}
	}
	return out
}

// candidate is a frame of EVENTS that may be a missing one.
type candidate struct {
	link
	digest [16]byte
	bytes  uint64
}

// match finds a gap's frames among those of EVENTS between its neighbours, in
// their order. Known is how many there are, and all their rows and bytes
// together; the frame behind the gap names the last one's digest. Frames that
// stand elsewhere in the shard, as known has them, are repeats.
func (c chain) match(g gap, found []candidate, known map[[16]byte]bool) []link {
	before, after := &c[g.after-1], &c[g.after]
	var fit []candidate
	for _, f := range found {
		if f.digest == after.prev || !known[f.digest] {
			fit = append(fit, f)
		}
	}
	end := len(fit) - 1
	for end >= 0 && fit[end].digest != after.prev {
		end--
	}
	n := int(g.to - g.from + 1)
	if end+1 < n {
		return nil
	}
	fit = fit[end+1-n : end+1]
	out := make([]link, n)
	rows, bytes, ids := before.shardRows, before.shardBytes, before.ids
	prev := [16]byte{}
	for i, f := range fit {
		rows, bytes, ids = rows+f.rows, bytes+f.bytes, ids+f.ids
		out[i] = f.link
		out[i].pos, out[i].shardRows, out[i].shardBytes, out[i].ids, out[i].prev, out[i].seq = g.from+uint64(i), rows, bytes, ids, prev, 0
		prev = f.digest
	}
	if rows != after.shardRows-after.rows || after.shardBytes < bytes {
		return nil
	}
	return out
}

// with is the chain with recovered frames in their places.
func (c chain) with(frames []link) chain {
	if len(frames) == 0 {
		return c
	}
	i := c.at(frames[0].pos)
	out := make(chain, 0, len(c)+len(frames))
	return append(append(append(out, c[:i]...), frames...), c[i:]...)
}

// digests are those the frames name.
func (c chain) digests() map[[16]byte]bool {
	out := make(map[[16]byte]bool, len(c))
	for i := range c {
		out[c[i].prev] = true
	}
	return out
}
