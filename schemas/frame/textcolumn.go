package frame

import (
	"encoding/binary"
	"slices"
)

// textColumn is strings one after the other, with where each ends.
type textColumn struct {
	buf  []byte
	ends []uint32
}

func (c *textColumn) add(s string) {
	c.buf = append(c.buf, s...)
	c.end()
}

func (c *textColumn) addBytes(s []byte) {
	c.buf = append(c.buf, s...)
	c.end()
}

// at is the value of row i.
func (c *textColumn) at(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = c.ends[i-1]
	}
	return c.buf[start:c.ends[i]]
}

func (c *textColumn) clone() textColumn {
	return textColumn{slices.Clone(c.buf), slices.Clone(c.ends)}
}

func (c *textColumn) end()   { c.ends = append(c.ends, uint32(len(c.buf))) }
func (c *textColumn) reset() { c.buf, c.ends = c.buf[:0], c.ends[:0] }

// appendTo writes a String column: each value after its length.
func (c *textColumn) appendTo(raw []byte) []byte {
	if len(c.buf) == 0 {
		return append(raw, make([]byte, len(c.ends))...) // lengths of 0
	}
	// Room for all, and for as much as is copied of a short value.
	at := len(raw)
	raw = slices.Grow(raw, len(c.buf)+len(c.ends)*binary.MaxVarintLen32+shortText)
	raw = raw[:cap(raw)]
	start := uint32(0)
	for _, end := range c.ends {
		n := end - start
		if from := c.buf[start:]; n <= shortText && len(from) >= shortText {
			raw[at] = byte(n)
			*(*[shortText]byte)(raw[at+1:]) = *(*[shortText]byte)(from)
			at += 1 + int(n)
		} else {
			at += binary.PutUvarint(raw[at:], uint64(n))
			at += copy(raw[at:], c.buf[start:end])
		}
		start = end
	}
	return raw[:at]
}

// shortText is how many bytes are copied where as many or fewer are wanted: that costs
// less than to ask how many.
const shortText = 16
