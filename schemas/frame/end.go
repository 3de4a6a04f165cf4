package frame

import (
	"encoding/binary"

	"github.com/almanac-events/almanac/schemas"
)

// End returns a block that ClickHouse reads after frames, and that no frame can be: one
// row at the time 0, which no event has, without its other columns. An insert tells by
// it that all rows of its frames came.
func End() []byte { return end }

var end = func() []byte {
	raw := appendColumn([]byte{1, 1}, schemas.BaseColumns[inTs]) // a column, a row
	return appendCompressed(nil, binary.LittleEndian.AppendUint64(raw, 0))
}()

// Block is any bytes compressed as a frame is, for what goes to ClickHouse before frames.
func Block(raw []byte) []byte { return appendCompressed(nil, raw) }
