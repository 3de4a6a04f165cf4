package schemas

import (
	"errors"
	"slices"

	"github.com/klauspost/compress/huff0"
)

// zstdLiterals gathers a block's literals and writes them.
type zstdLiterals struct {
	bytes []byte
	huff  huff0.Scratch
}

const (
	// zstdFewLiterals is how many are not worth a Huffman table, which takes as much as
	// it could save.
	zstdFewLiterals = 32
	// zstdOneStream is up to how many are one stream of bits: a format of three bytes'
	// head then counts them (RFC 8878, 3.1.1.3.1.1), and more are read four at once.
	zstdOneStream = 1023
)

// How literals are given (RFC 8878, 3.1.1.3.1.1).
const (
	zstdLiteralsRaw       = 0
	zstdLiteralsRepeated  = 1 // RLE
	zstdLiteralsHuffman   = 2
	zstdLiteralsSameTable = 3 // Treeless
)

// zstdLitSlack is how many bytes are copied where fewer are counted.
const zstdLitSlack = 16

// reset is a block's of at most n bytes.
func (l *zstdLiterals) reset(n int) {
	l.bytes = slices.Grow(l.bytes[:0], n+zstdLitSlack)
}

// add appends literals.
func (l *zstdLiterals) add(lits []byte) { l.bytes = append(l.bytes, lits...) }

// begin is a frame's: no table yet.
func (l *zstdLiterals) begin() { l.huff.Reuse = huff0.ReusePolicyNone }

// appendTo writes the block's literals section (RFC 8878, 3.1.1.3.1).
func (l *zstdLiterals) appendTo(out []byte) []byte {
	n := len(l.bytes)
	if n <= zstdFewLiterals {
		return append(appendLiteralsHead(out, zstdLiteralsRaw, n), l.bytes...)
	}
	compress, streams := huff0.Compress4X, 4
	if n <= zstdOneStream {
		compress, streams = huff0.Compress1X, 1
	}
	packed, same, err := compress(l.bytes, &l.huff)
	switch {
	case errors.Is(err, huff0.ErrUseRLE):
		return append(appendLiteralsHead(out, zstdLiteralsRepeated, n), l.bytes[0])
	case err != nil:
		return append(appendLiteralsHead(out, zstdLiteralsRaw, n), l.bytes...)
	}
	l.huff.Reuse = huff0.ReusePolicyAllow
	kind := uint64(zstdLiteralsHuffman)
	if same {
		kind = zstdLiteralsSameTable
	}
	return append(appendHuffmanHead(out, kind, streams, n, len(packed)), packed...)
}

// appendLiteralsHead writes the head of n literals that are not compressed.
func appendLiteralsHead(out []byte, kind, n int) []byte {
	switch {
	case n < 1<<5:
		return append(out, byte(kind|n<<3))
	case n < 1<<12:
		return append(out, byte(kind|1<<2|n<<4), byte(n>>4))
	}
	return append(out, byte(kind|3<<2|n<<4), byte(n>>4), byte(n>>12))
}

// appendHuffmanHead writes the head of n literals compressed to so many bytes.
func appendHuffmanHead(out []byte, kind uint64, streams, n, packed int) []byte {
	format, width := uint64(0), uint(10)
	switch most := max(n, packed); {
	case streams == 1:
	case most < 1<<10:
		format = 1
	case most < 1<<14:
		format, width = 2, 14
	default:
		format, width = 3, 18
	}
	head := kind | format<<2 | uint64(n)<<4 | uint64(packed)<<(4+width)
	for size := 4 + 2*width; size > 0; size -= 8 {
		out = append(out, byte(head))
		head >>= 8
	}
	return out
}
