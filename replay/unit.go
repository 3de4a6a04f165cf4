package replay

import (
	"cmp"
	"sort"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// unit is what moves through a replay: the events of one position, from SHARDS or from ClickHouse.
type unit struct {
	shard *shard
	// end is where the shard is replayed to once the unit is.
	end position
	// weight is what it may take in memory, in bytes, once rendered.
	weight int64
	// expected is how many events SHARDS or ClickHouse gave for it, before the
	// filters of a frame.
	expected int

	// One of the two: a frame as SHARDS has it, or pieces of stored blocks.
	frame  schemas.Placed
	data   []byte
	pieces []piece

	// What rendering made of it.
	events int
	lines  []byte
	rows   []entry // what the sink takes one by one, when order or pace asks for it
	frames []outFrame
	ready  chan struct{}
}

// piece is rows from to to (exclusive) of a stored block.
type piece struct {
	block    *storedBlock
	from, to int
}

// storedBlock is a block of ClickHouse's answer, open and never changed again.
type storedBlock struct {
	reader frame.Reader
}

// entry is one event of a unit's lines, or all of them when the sink is a topic:
// frames stay together.
type entry struct {
	ts       int64 // unix ns, of the first
	id       schemas.ID
	nth      int // of those with the same time and id, from 0
	from, to int
	events   int
}

// position is how far a shard was replayed.
type position struct {
	// Number is the last position that is safe.
	Number uint64 `json:"n"`
	// Given: of a later position some events are safe too.
	Given *given `json:"g,omitempty"`
}

// given says which events of a position are safe: those up to the Nth of a time and an id, in the order
// of both. So it holds whichever source the position comes from, and when an erasure took
// some of its events meanwhile.
type given struct {
	Pos uint64     `json:"p"`
	Ts  int64      `json:"t"`
	ID  schemas.ID `json:"i"`
	Nth int        `json:"e"`
}

// upTo is the mark for the event of a unit at place i, with those before it.
func (u *unit) upTo(i int) *given {
	e := &u.rows[i]
	return &given{u.end.Number, e.ts, e.id, e.nth}
}

// after is the place of the first event that is not safe.
func (u *unit) after(g *given) int {
	if g == nil || g.Pos != u.end.Number {
		return 0
	}
	last := entry{ts: g.Ts, id: g.ID, nth: g.Nth}
	return sort.Search(len(u.rows), func(i int) bool {
		return cmp.Or(u.rows[i].compare(last), cmp.Compare(u.rows[i].nth, last.nth)) > 0
	})
}
