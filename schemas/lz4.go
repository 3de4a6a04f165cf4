package schemas

import "encoding/binary"

// What LZ4's block format asks for: copies of four bytes or more, from at most
// 65,535 bytes back; the last five bytes are literals, and no copy begins among
// the last twelve.
const (
	lz4MinCopy    = 4
	lz4MaxOffset  = 1<<16 - 1
	lz4LastBytes  = 5
	lz4CopyMargin = 12
)

// lz4Slack is how far beyond what it counts snappyToLZ4 may write.
const lz4Slack = 16

// lz4Bound is the most that a block of n bytes takes, with the slack.
func lz4Bound(n int) int { return n + n/255 + 16 + lz4Slack }

// snappySlack is how many bytes must stand behind a Snappy block, to be read and
// not used: a copy's offset is read as four bytes, however many it has.
const snappySlack = 4

// snappyCopy is what a copy's tag says of it.
type snappyCopy struct {
	size   uint8  // of the copy, in bytes
	offset uint8  // bytes of the offset that follow the tag
	high   uint16 // what of the offset the tag has
}

// snappyCopies has it by tag: a table costs no branch, and which kind of copy comes
// next nobody can predict.
var snappyCopies = func() (copies [256]snappyCopy) {
	for tag := range copies {
		switch tag & 3 {
		case 1: // 4 to 11 bytes
			copies[tag] = snappyCopy{uint8(4 + tag>>2&7), 1, uint16(tag >> 5 << 8)}
		case 2: // 1 to 64 bytes
			copies[tag] = snappyCopy{uint8(tag>>2 + 1), 2, 0}
		case 3: // the same, from farther than LZ4 reaches
			copies[tag] = snappyCopy{uint8(tag>>2 + 1), 4, 0}
		}
	}
	return copies
}()

var snappyOffsets = [8]uint32{1: 1<<8 - 1, 2: 1<<16 - 1, 4: 1<<32 - 1}

// snappyLongCopy is the shortest piece that a longer copy is cut into.
const snappyLongCopy = 60

// snappyToLZ4 writes src, which is also given as a valid Snappy block with room for
// snappySlack more, as an LZ4 block to dst, and returns its length. dst has room for
// lz4Bound(len(src)).
func snappyToLZ4(dst, block, src []byte) int {
	_, i := binary.Uvarint(block)
	end := len(block)
	block = block[:end+snappySlack]
	// Literals before a copy that begins no later can be moved by the slack.
	last := len(src) - max(lz4CopyMargin, lz4Slack)
	n, pos, anchor := 0, 0, 0
	for i < end {
		tag := block[i]
		if tag&3 == 0 {
			size, head := snappyLiterals(block[i:])
			i += head + size
			pos += size
			continue
		}
		c := snappyCopies[tag]
		size := int(c.size)
		offset := int(uint32(c.high) + binary.LittleEndian.Uint32(block[i+1:])&snappyOffsets[c.offset&7])
		i += 1 + int(c.offset)
		for size >= snappyLongCopy && i < end { // they come in pieces
			next := snappyCopies[block[i]]
			if next.size == 0 || int(uint32(next.high)+binary.LittleEndian.Uint32(block[i+1:])&snappyOffsets[next.offset&7]) != offset {
				break
			}
			size += int(next.size)
			i += 1 + int(next.offset)
		}
		from := pos
		pos += size
		if from > last {
			break
		}
		if size = min(size, len(src)-lz4LastBytes-from) - lz4MinCopy; size < 0 || offset > lz4MaxOffset {
			continue
		}
		lit := from - anchor
		if lit < 15 {
			d := dst[n : n+1+lz4Slack+2]
			d[0] = byte(lit << 4)
			*(*[lz4Slack]byte)(d[1:]) = *(*[lz4Slack]byte)(src[anchor:])
			binary.LittleEndian.PutUint16(d[1+lit:], uint16(offset))
			if size < 15 {
				d[0] |= byte(size)
				n, anchor = n+3+lit, from+lz4MinCopy+size
				continue
			}
			d[0] |= 15
			n = lz4Length(dst, n+3+lit, size-15)
		} else {
			token := n
			dst[token] = 15<<4 | byte(min(size, 15))
			n = lz4Length(dst, n+1, lit-15)
			n += copy(dst[n:], src[anchor:from])
			binary.LittleEndian.PutUint16(dst[n:], uint16(offset))
			if n += 2; size >= 15 {
				n = lz4Length(dst, n, size-15)
			}
		}
		anchor = from + lz4MinCopy + size
	}
	return lz4Literals(dst, n, src[anchor:])
}

// snappyLiterals is how many literals stand at the beginning of block, and how long
// the tag before them is.
func snappyLiterals(block []byte) (size, head int) {
	size = int(block[0]>>2) + 1
	if size <= 60 {
		return size, 1
	}
	head = size - 60
	size = int(binary.LittleEndian.Uint32(block[1:]) & (1<<(8*head) - 1))
	return size + 1, 1 + head
}

// lz4Literals writes the literals that end a block at dst[n:], and returns the block's
// length.
func lz4Literals(dst []byte, n int, lit []byte) int {
	dst[n] = byte(min(len(lit), 15) << 4)
	if n++; len(lit) >= 15 {
		n = lz4Length(dst, n, len(lit)-15)
	}
	return n + copy(dst[n:], lit)
}

// lz4Length writes what of a length did not fit the token at dst[n:], and returns
// where it ends.
func lz4Length(dst []byte, n, length int) int {
	for ; length >= 255; length -= 255 {
		dst[n] = 255
		n++
	}
	dst[n] = byte(length)
	return n + 1
}
