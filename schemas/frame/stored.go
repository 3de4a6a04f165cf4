package frame

import (
	"encoding/binary"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// OpenStored reads the first block of an answer in ClickHouse's Native format, not
// compressed, whose columns are StoredColumns; the block counts as a frame of the
// newest schema version. It says how many bytes the block has. data must stay as
// it is until the next block is opened. An error may only mean that data ends
// within the block.
func (r *Reader) OpenStored(data []byte, t *schemas.Topic) (n int, err error) {
	r.rows = 0
	r.raw = data
	c := cursor{raw: data}
	if cols, rows := c.uvarint(), c.uvarint(); c.bad {
		return 0, errCut
	} else if rows == 0 { // names and types alone: how an empty answer may begin
		for range cols {
			c.text()
			c.text()
		}
		if c.bad {
			return 0, errCut
		}
		return c.at, nil
	}
	c = cursor{raw: data}
	rows, err := r.walk(&c, append(t.FrameColumns(t.Version), schemas.Column{Name: schemas.ColPos, Type: kinds.WireUInt64}))
	if err != nil {
		return 0, err
	}
	r.rows = rows
	return c.at, nil
}

// StoredPos is the position of row i of a block that OpenStored opened.
func (r *Reader) StoredPos(i int) uint64 {
	return binary.LittleEndian.Uint64(r.columns[len(r.columns)-1].fixed[8*i:])
}

// ForgetStored lets go of the answer's memory, so that the reader may open frames
// in a buffer of its own again.
func (r *Reader) ForgetStored() { r.raw, r.rows = nil, 0 }

// SameColumns says whether frames of t's schema version v have the columns that
// frames of u's version w have, so that bytes made under one may be passed on
// under the other.
func SameColumns(t *schemas.Topic, v int, u *schemas.Topic, w int) bool {
	return slices.Equal(t.FrameColumns(v), u.FrameColumns(w))
}
