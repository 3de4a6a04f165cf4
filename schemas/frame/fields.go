package frame

import (
	"github.com/almanac-events/almanac/schemas"
)

// CountFields is how many promoted fields a frame has, by its own count of
// columns.
func CountFields(payload []byte) (int, bool) {
	raw, err := decompress(payload, nil)
	if err != nil {
		return 0, false
	}
	c := cursor{raw: raw}
	n := c.uvarint()
	if c.bad || n < uint64(len(schemas.BaseColumns)) || n > uint64(len(schemas.BaseColumns)+schemas.MaxFields) {
		return 0, false
	}
	return int(n) - len(schemas.BaseColumns), true
}
