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

// lz4Slack is how far beyond what it counts lz4Writer may write.
const lz4Slack = 16

// lz4Bound is the most that a block of n bytes takes, with the slack.
func lz4Bound(n int) int { return n + n/255 + 16 + lz4Slack }

// snappyToLZ4 writes src, which is also given as a valid Snappy block, as an LZ4
// block to dst, and returns its length. dst has room for lz4Bound(len(src)).
func snappyToLZ4(dst, block, src []byte) int {
	w := lz4Writer{dst: dst, src: src}
	_, i := binary.Uvarint(block)
	pos, from, offset := 0, 0, 0 // the copy that may still grow: of src[from:pos], 0 when there is none
	for i < len(block) {
		var n, off int
		switch tag := block[i]; tag & 3 {
		case 0: // literals
			n = int(tag>>2) + 1
			i++
			if n > 60 {
				extra := n - 60
				n = 0
				for k := range extra {
					n |= int(block[i+k]) << (8 * k)
				}
				n++
				i += extra
			}
			i += n
		case 1: // a copy of 4 to 11 bytes
			n, off = 4+int(tag>>2&7), int(tag>>5)<<8|int(block[i+1])
			i += 2
		case 2: // a copy of 1 to 64 bytes
			n, off = int(tag>>2)+1, int(binary.LittleEndian.Uint16(block[i+1:]))
			i += 3
		default:
			n, off = int(tag>>2)+1, int(binary.LittleEndian.Uint32(block[i+1:]))
			i += 5
		}
		// Long copies come in pieces.
		if off != offset || off == 0 {
			w.copied(from, pos, offset)
			from, offset = pos, off
		}
		pos += n
	}
	w.copied(from, pos, offset)
	return w.end()
}

// lz4Writer gathers literals until a copy comes.
type lz4Writer struct {
	dst, src []byte
	n        int // written to dst
	anchor   int // where the literals not yet written begin in src
}

// copied takes src[from:to] as a copy from offset bytes before. What LZ4 cannot
// express, and no offset at all, are literals.
func (w *lz4Writer) copied(from, to, offset int) {
	to = min(to, len(w.src)-lz4LastBytes)
	size := to - from - lz4MinCopy
	if offset == 0 || offset > lz4MaxOffset || size < 0 || from > len(w.src)-lz4CopyMargin {
		return
	}
	token := w.literals(w.src[w.anchor:from])
	binary.LittleEndian.PutUint16(w.dst[w.n:], uint16(offset))
	w.n += 2
	if size < 15 {
		w.dst[token] |= byte(size)
	} else {
		w.dst[token] |= 15
		w.length(size - 15)
	}
	w.anchor = to
}

// literals writes a token and literals, and returns where the token stands.
func (w *lz4Writer) literals(lit []byte) (token int) {
	token = w.n
	w.n++
	if len(lit) < 15 {
		w.dst[token] = byte(len(lit) << 4)
		if w.anchor+lz4Slack <= len(w.src) {
			// One move of a size the compiler knows is faster than a call.
			*(*[lz4Slack]byte)(w.dst[w.n:]) = *(*[lz4Slack]byte)(w.src[w.anchor:])
			w.n += len(lit)
			return token
		}
	} else {
		w.dst[token] = 15 << 4
		w.length(len(lit) - 15)
	}
	w.n += copy(w.dst[w.n:], lit)
	return token
}

// length writes what of a length did not fit the token.
func (w *lz4Writer) length(n int) {
	for ; n >= 255; n -= 255 {
		w.dst[w.n] = 255
		w.n++
	}
	w.dst[w.n] = byte(n)
	w.n++
}

// end writes the last literals and returns the block's length.
func (w *lz4Writer) end() int {
	w.literals(w.src[w.anchor:])
	return w.n
}
