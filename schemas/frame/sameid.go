package frame

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"math/bits"

	"github.com/almanac-events/almanac/schemas"
)

// A topic that has events once names rows by their id, shard and position, and a position is a frame's. So a stored
// frame of such a topic never has two events of one id. A router makes several frames of one that has (Apart), as many
// as the most frequent id has events, and refuses one with more than schemas.MaxSameIDs.

// IDCounts tells a maker of frames when one holds as many events of an id as a router takes. It counts in few bytes:
// different ids may have a counter in common, so a frame may close earlier than it must, and never later. The same ids
// give the same answers in every process. The zero value is ready.
type IDCounts struct {
	counts [idCounters]uint8
	used   bool
}

// idCounters is as many as a frame has events. Ids are spread over them: that one counter gets
// schemas.MaxSameIDs different ids of schemas.FrameRows happens to one frame in ten thousand million.
const (
	idCounterBits = 11
	idCounters    = 1 << idCounterBits
)

// Often reports whether the frame may have schemas.MaxSameIDs events of an id, so that another belongs in the next frame.
func (c *IDCounts) Often(id schemas.ID) bool { return c.counts[idCounter(id)] >= schemas.MaxSameIDs }

// Add counts an event.
func (c *IDCounts) Add(id schemas.ID) {
	c.used = true
	c.counts[idCounter(id)]++
}

// Reset begins another frame.
func (c *IDCounts) Reset() {
	if c.used {
		*c = IDCounts{}
	}
}

// idCounter spreads ids by the fractional part of their multiples of the golden ratio, which keeps apart also those that
// only count up.
func idCounter(id schemas.ID) uint64 {
	const golden, other = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := binary.BigEndian.Uint64(id[0:])*other ^ binary.BigEndian.Uint64(id[8:])
	h ^= h >> 32
	return h * golden >> (64 - idCounterBits)
}

// sameIDs is what a frame's ids have in common.
type sameIDs struct {
	id    schemas.ID // which comes most often
	most  int        // so often; 0: not counted yet
	zeros bool       // an event has the id of zeros
}

// checkIDs refuses a frame of a topic that has events once, if it has an id too often, or the one of zeros, which
// stands for none. lane is schemas.NoLane for a frame that was routed.
func (r *Reader) checkIDs(lane int) error {
	if lane == schemas.NoLane || !r.topic.HasOnce() {
		return nil
	}
	switch same := r.countIDs(); {
	case same.zeros:
		return fmt.Errorf("%w: an event has the id of zeros, which stands for none: `almanac dead retry %s` gives it one", schemas.ErrID, r.topic.Name)
	case same.most > schemas.MaxSameIDs:
		return fmt.Errorf("%w: %d events have the id %s, a frame of topic %q may have %d: `almanac dead retry %s` sends them in several",
			schemas.ErrSameID, same.most, same.id, r.topic.Name, schemas.MaxSameIDs, r.topic.Name)
	}
	return nil
}

// countIDs counts once for each frame. Ids that rise, as those that producers make do, are each there once.
func (r *Reader) countIDs() sameIDs {
	if r.same.most == 0 {
		r.same = sameIDs{id: r.ID(0), most: 1, zeros: r.ID(0).IsZero()}
		if ids := r.columns[inID].fixed; !rising(ids) && !r.differ(ids) {
			r.same = r.countEach()
		}
	}
	return r.same
}

// rising reports whether ids, as a frame has them, come in strict order.
func rising(ids []byte) bool {
	hi, lo := binary.LittleEndian.Uint64(ids), binary.LittleEndian.Uint64(ids[8:])
	for ids = ids[16:]; len(ids) >= 16; ids = ids[16:] {
		nextHi, nextLo := binary.LittleEndian.Uint64(ids), binary.LittleEndian.Uint64(ids[8:])
		if nextHi < hi || nextHi == hi && nextLo <= lo {
			return false
		}
		hi, lo = nextHi, nextLo
	}
	return true
}

// idSeed makes it impossible to choose ids that have a place of the table in common.
var idSeed = maphash.MakeSeed()

// differ reports whether all ids differ from one another, and from that of zeros: a fourth of what it costs to count them (BenchmarkCheckIDs).
func (r *Reader) differ(ids []byte) bool {
	n := 1 << bits.Len(uint(2*r.rows)) // at most half full
	if cap(r.table) < n {
		r.table = make([]uint32, n)
	}
	table := r.table[:n] // of numbers of events, from 1
	clear(table)
	for i := range r.rows {
		id := ids[16*i : 16*i+16]
		if [16]byte(id) == (schemas.ID{}) {
			return false
		}
		at := maphash.Bytes(idSeed, id) & uint64(n-1)
		for ; table[at] != 0; at = (at + 1) & uint64(n-1) {
			if before := 16 * int(table[at]-1); [16]byte(ids[before:before+16]) == [16]byte(id) {
				return false
			}
		}
		table[at] = uint32(i + 1)
	}
	return true
}

func (r *Reader) countEach() (same sameIDs) {
	counts := make(map[schemas.ID]int, r.rows)
	for i := range r.rows {
		id := r.ID(i)
		n := counts[id] + 1
		counts[id] = n
		if n > same.most {
			same.id, same.most = id, n
		}
		same.zeros = same.zeros || id.IsZero()
	}
	return same
}

// Apart returns the open frame f again, of a topic that has events once, as frames none of which has two events of one id;
// none when f is such a frame. The events keep their ids and times, and those of one id their order. The frames are of the topic's newest schema version. The first alone is the
// producer's, as with Ruled. The same frame and topic give the same bytes.
func (r *Reader) Apart(f schemas.Frame) ([]Made, error) {
	if !r.topic.HasOnce() {
		return nil, nil
	}
	most := r.countIDs().most
	if most < 2 {
		return nil, nil
	}
	m := remaker{of: f}
	builders := make([]*Builder, most) // the n-th event of an id goes to the n-th
	for n := range builders {
		builders[n] = NewBuilder(r.topic)
	}
	had := make(map[schemas.ID]int, r.rows)
	for i := range r.rows {
		e := r.remade(i)
		n := had[e.ID]
		had[e.ID]++
		if !builders[n].Fits(&e) {
			// Those before it first: they have the earlier events of its ids.
			if err := m.flushAll(builders[:n+1]); err != nil {
				return nil, err
			}
		}
		builders[n].Append(&e, r.Ts(i), e.ID)
	}
	err := m.flushAll(builders)
	return m.out, err
}
