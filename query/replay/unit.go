package replay

import (
	"github.com/almanac-events/almanac/schemas"
)

// unit is what moves through a replay: events of one shard that stand together.
type unit struct {
	shard *shard
	// end is where the shard is replayed to once the unit is.
	end mark
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
	err    error
	ready  chan struct{}
}

// piece is rows from to to (exclusive) of a stored block.
type piece struct {
	block    *storedBlock
	from, to int
}

// storedBlock is a block of ClickHouse's answer, open and never changed again.
type storedBlock struct {
	reader schemas.FrameReader
}

// entry is one event of a unit's lines, or all of them when the sink is a topic:
// frames stay together.
type entry struct {
	ts       int64 // unix ns, of the first
	from, to int
	events   int
}

// mark is how far a shard was replayed: the number of its last unit that is safe.
type mark struct {
	Number uint64 `json:"n"`
	// Stored says that the unit came from ClickHouse, Begin is the position before
	// its insert, or the insert's own when the unit was its last, and Of how many
	// rows the insert had.
	Stored bool   `json:"s,omitempty"`
	Begin  uint64 `json:"b,omitempty"`
	Of     uint64 `json:"o,omitempty"`
	// Events of the next unit are safe too.
	Events int `json:"e,omitempty"`
}
