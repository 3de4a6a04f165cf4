package frame

import "encoding/binary"

// cursor reads the block with bounds; once bad it stays so. bytes yields nothing then;
// who calls uvarint looks at bad.
type cursor struct {
	raw []byte
	at  int
	bad bool
}

func (c *cursor) uvarint() uint64 {
	v, n := binary.Uvarint(c.raw[c.at:])
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.at += n
	return v
}

func (c *cursor) bytes(n int) []byte {
	if c.bad || n < 0 || n > len(c.raw)-c.at {
		c.bad = true
		return nil
	}
	b := c.raw[c.at : c.at+n]
	c.at += n
	return b
}

// uint64 reads a fixed number, as the header of a LowCardinality column and of its map have:
// version, flags and counts. All other lengths are varints.
func (c *cursor) uint64() uint64 {
	if b := c.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) text() []byte {
	n := c.uvarint()
	if n > uint64(len(c.raw)) {
		c.bad = true
		return nil
	}
	return c.bytes(int(n))
}

func (c *cursor) words(w *wordList, n int) {
	w.reset()
	c.moreWords(w, n)
}

func (c *cursor) moreWords(w *wordList, n int) {
	for range n {
		s := c.text()
		if c.bad {
			return
		}
		w.starts = append(w.starts, uint32(c.at-len(s)))
		w.ends = append(w.ends, uint32(c.at))
	}
}

// wordList is where each string lies in the decompressed frame.
type wordList struct{ starts, ends []uint32 }

func (w *wordList) size(i int) int { return int(w.ends[i] - w.starts[i]) }

func (w *wordList) reset() { w.starts, w.ends = w.starts[:0], w.ends[:0] }
