package recent

import (
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// frameIndex is the metas of one lane of EVENTS, or of one shard of SHARDS, from
// some key on. Its tailer holds the turn while it is used.
//
// It is a copy and decides nothing: a frame index that does not reach back as far as a
// query needs is restarted, and so is one whose stream may have been restored.
type frameIndex struct {
	place
	cache *recentCache

	from   uint64 // every frame with a key from here on, below next, is in metas
	next   uint64 // sequence to read next; 0: nowhere yet
	nth    uint64
	inStep bool // whatever its tailer read since is in it too
	metas  []frameMeta
	last   *streams.Tail // in SHARDS: the last frame or mark seen
	other  uint64        // sequence of the last message that is not a frame, such as bare JSON
	used   time.Time
	given  *given // what the lane of EVENTS was given; nil: not read
	// Metas up to marked go when a mark is set the next time: a query that began
	// before may still need them.
	marked   uint64
	markedAt time.Time
}

// indexLinger is how long metas of what is routed or stored stay. A query
// that takes longer reads again.
const indexLinger = 5 * time.Second

// clear forgets everything.
func (t *frameIndex) clear() {
	t.cache.metas.Add(-int64(len(t.metas)))
	t.forgetGiven()
	t.from, t.next, t.inStep, t.metas, t.last, t.other, t.marked = 0, 0, false, nil, nil, 0, 0
}

// begin lets the frame index start at a key that stands at or behind a sequence.
func (t *frameIndex) begin(from, next uint64) {
	t.clear()
	t.from, t.next = from, max(next, 1)
}

// reach lets a frame index of EVENTS, where a frame's key is its sequence, reach back to one. One that does, and was left
// before it came to the end, goes on there: else queries that end too early would each
// read the same of a long backlog again.
func (t *frameIndex) reach(from uint64) {
	if t.next == 0 || t.from > from {
		t.begin(from, from)
	}
}

// add takes the next message. errUntracked: the frame index cannot take it.
func (t *frameIndex) add(m *message) error {
	t.next, t.nth = m.seq+1, t.nth+1
	h, placed, ok := frameMetaOf(t.stream, m.header, m.seq, m.stored, m.bytes)
	if !ok {
		t.other = m.seq
		return nil
	}
	if t.stream == schemas.StreamShards {
		last := streams.Tail{Placed: placed, Seq: m.seq}
		var err error
		if last.Ref, err = schemas.ParseShardSubject(m.subject); err != nil {
			return nil
		}
		if t.last != nil && placed.Pos <= t.last.Pos && placed.Cleared == "" {
			return errUntracked
		}
		t.last = &last
	}
	if placed.Cleared != "" || h.key < t.from {
		return nil
	}
	if t.cache.metas.Add(1) > MaxFrames {
		t.cache.metas.Add(-1)
		return errUntracked
	}
	h.nth, h.part = t.nth, partOf(t.stream, m.header, m.subject, m.stored)
	if m.whole != nil {
		if f, err := frameOf(t.stream, m.whole); err == nil {
			h.kept = t.cache.keep(f)
		}
	}
	t.metas = append(t.metas, h)
	return nil
}

// missing says that frames above floor, which must not be below from, were no longer
// in the stream when the frame index began: they are stored, and the head that says so was
// not seen yet.
func (t *frameIndex) missing(floor uint64) bool {
	if t.last == nil || t.last.Pos <= floor {
		return false
	}
	return uint64(len(t.metas)-t.behind(floor)) < t.last.Pos-floor
}

// behind is how many headings have a key up to floor.
func (t *frameIndex) behind(floor uint64) int {
	i, _ := slices.BinarySearchFunc(t.metas, floor, func(h frameMeta, floor uint64) int {
		if h.key <= floor {
			return -1
		}
		return 1
	})
	return i
}

// above are the frames with a key above floor that meet the range.
func (t *frameIndex) above(floor uint64, lo, hi int64) []Meta {
	var out []Meta
	for _, h := range t.metas[t.behind(floor):] {
		if h.maxTs >= lo && h.minTs <= hi {
			out = append(out, Meta{h, t.place})
		}
	}
	return out
}

// passed hears that everything up to a key is routed, or stored: in a while its
// headings go.
func (t *frameIndex) passed(upTo uint64, now time.Time) {
	t.used = now
	if now.Sub(t.markedAt) < indexLinger {
		return
	}
	n := 0
	for n < len(t.metas) && t.metas[n].key <= t.marked {
		n++
	}
	if n > 0 {
		t.metas = slices.Clone(t.metas[n:]) // a slice of it would keep them all
		t.cache.metas.Add(-int64(n))
	}
	t.from = max(t.from, t.marked+1)
	t.marked, t.markedAt = max(t.marked, upTo), now
}
