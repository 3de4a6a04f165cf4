package schemas

import (
	"encoding/binary"

	"github.com/klauspost/compress/huff0"
)

// zstdWriter writes frames of ZSTD (RFC 8878): of one segment, that state their size,
// have no checksum, and blocks of at most 128 KiB.
type zstdWriter struct {
	sequences zstdSequences
	literals  zstdLiterals
	matches   zstdMatches
	raw       []byte
	start     int // of the block in raw
	anchor    int // where the literals begin that no sequence has yet
}

// zstdPart is what is known of a part of what is compressed: where it ends, and that
// it is rows of stride bytes; 0 is not known.
type zstdPart struct{ end, stride int }

// zstdMagic begins a frame (RFC 8878, 3.1.1).
const zstdMagic = 0xfd2fb528

// zstdOwnBlock is the least of a part that gets blocks of its own, with tables that
// fit it: 256 rows of a number. The tables' descriptions take 50 to 100 bytes.
const zstdOwnBlock = 2 << 10

// appendTo writes raw as one frame behind out. parts follow one another; what is
// behind the last is text.
func (w *zstdWriter) appendTo(out, raw []byte, parts []zstdPart) []byte {
	out = appendZstdHead(out, len(raw))
	w.raw, w.start, w.anchor = raw, 0, 0
	w.sequences.begin()
	w.literals.begin()
	w.matches.begin(len(raw))
	w.open()
	from := 0
	for i := 0; i <= len(parts); i++ {
		p := zstdPart{end: len(raw)}
		if i < len(parts) {
			p = parts[i]
		}
		if from-w.start >= zstdOwnBlock && p.end-from >= zstdOwnBlock {
			out = w.close(out, from)
		}
		for at := from; at < p.end; {
			limit := min(p.end, w.start+zstdMostBlock)
			if p.stride == 0 {
				w.gather(at, limit)
			} else {
				w.gatherRows(max(at, from+p.stride), limit, p.stride)
			}
			if at = limit; at == w.start+zstdMostBlock && at < len(raw) {
				out = w.close(out, at)
			}
		}
		from = p.end
	}
	out = w.close(out, len(raw))
	w.raw = nil
	return out
}

// appendZstdHead writes the head of a frame of n bytes (RFC 8878, 3.1.1.1).
func appendZstdHead(out []byte, n int) []byte {
	const single = 1 << 5
	out = binary.LittleEndian.AppendUint32(out, zstdMagic)
	switch {
	case n < 256:
		return append(out, single, byte(n))
	case n < 256+1<<16:
		return binary.LittleEndian.AppendUint16(append(out, single|1<<6), uint16(n-256))
	}
	return binary.LittleEndian.AppendUint32(append(out, single|2<<6), uint32(n))
}

// The types of blocks (RFC 8878, 3.1.1.2.2).
const (
	zstdBlockRaw        = 0
	zstdBlockCompressed = 2
)

// appendBlockHead writes the head of a block of n bytes (RFC 8878, 3.1.1.2).
func appendBlockHead(out []byte, kind, n int, last bool) []byte {
	head := kind<<1 | n<<3
	if last {
		head |= 1
	}
	return append(out, byte(head), byte(head>>8), byte(head>>16))
}

// open begins a block.
func (w *zstdWriter) open() {
	w.anchor = w.start
	w.sequences.reset(min(zstdMostBlock, len(w.raw)-w.start))
	w.literals.reset(min(zstdMostBlock, len(w.raw)-w.start))
}

// close writes what was gathered as the block that ends at end, or that raw when it
// takes no more.
func (w *zstdWriter) close(out []byte, end int) []byte {
	raw, last := w.raw[w.start:end], end == len(w.raw)
	w.literals.add(w.raw[w.anchor:end])
	at := len(out)
	out = w.literals.appendTo(appendBlockHead(out, zstdBlockCompressed, 0, last))
	out = w.sequences.appendTo(out)
	if n := len(out) - at - 3; n < len(raw) {
		appendBlockHead(out[:at], zstdBlockCompressed, n, last)
		w.sequences.kept()
	} else { // who reads it knows neither the block's offsets nor its table
		w.literals.huff.Reuse = huff0.ReusePolicyNone
		out = append(appendBlockHead(out[:at], zstdBlockRaw, len(raw), last), raw...)
	}
	w.start = end
	w.open()
	return out
}

// add appends a sequence: what is literals up to from, and size bytes copied from
// offset before.
func (w *zstdWriter) add(from, size, offset int) {
	s, l := &w.sequences, &w.literals
	lit := from - w.anchor
	l.add(w.raw[w.anchor:from])
	w.anchor = from + size
	value := s.recent.at(uint32(offset), lit == 0)
	s.put(zstdLitCode(uint32(lit)), uint32(lit), zstdCopyCode(uint32(size-zstdMinCopy)), uint32(size-zstdMinCopy), value)
}
