package replay

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// unit is what moves through a replay: events of one shard that stand together.
type unit struct {
	shard *shard
	// end is where the shard is replayed to once the unit is.
	end mark
	// weight is what it may take in memory, in bytes, once rendered.
	weight int64
	// by is what the unit was made of.
	by source
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
	// Ahead is what the units behind Number were made of, of which the sink may have
	// some, or of the first some events: up to schemas.MaxInFlight numbers when it is
	// a topic. nil: nothing is under way.
	Ahead *source `json:"a,omitempty"`
}

// source is what a unit is made of: a frame, or a part of the rows of the insert
// behind the position Begin, of which there were Of. An insert of one position is
// the rows of its frame: it is not cut, and both are 0.
type source struct {
	Stored bool   `json:"s,omitempty"`
	Begin  uint64 `json:"b,omitempty"`
	Of     uint64 `json:"o,omitempty"`
}

// agrees says whether a unit behind a saved mark has the events that its number
// had when the mark was saved, as far as they may have been given to the sink: up
// to reach numbers.
func (m *mark) agrees(u *unit, reach uint64) error {
	a := m.Ahead
	switch {
	case a == nil:
		return nil
	case a.Stored && (a.Of == 0 || u.by.Begin != a.Begin || u.by.Of == a.Of || !u.by.Stored):
		return nil
	case !a.Stored && (u.by.Of == 0 || u.by.Begin >= m.Number+reach):
		return nil
	}
	return fmt.Errorf("%w: %s: the job was stopped after position %d, within frames that cannot be told apart any more; to have them again, start a new job with --shard %s --from-pos %d",
		ErrPurged, u.shard.Name(), m.Number, u.shard.ID, m.Number+1)
}
