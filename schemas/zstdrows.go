package schemas

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// gatherRows makes sequences of rows of stride bytes, from at to limit: what is as it
// is in the row before is copied from there. All rows are equally wide, so nothing need
// be looked for.
func (w *zstdWriter) gatherRows(at, limit, stride int) {
	const below = 0x7f7f7f7f7f7f7f7f // all bits of a byte but the highest
	raw, s := w.raw, &w.sequences
	lits, n := w.literals.bytes[:cap(w.literals.bytes)], len(w.literals.bytes)
	anchor := w.anchor
	for at+8 <= limit {
		x := binary.LittleEndian.Uint64(raw[at:]) ^ binary.LittleEndian.Uint64(raw[at-stride:])
		same := ^((x&below + below) | x | below) // the high bit of each byte that is 0
		same &= same >> 8 & (same >> 16)         // and of three
		if same == 0 {
			at += 6
			continue
		}
		at += bits.TrailingZeros64(same) >> 3
		from := at
		if at += zstdMinCopy; at+8 <= limit {
			if x = binary.LittleEndian.Uint64(raw[at:]) ^ binary.LittleEndian.Uint64(raw[at-stride:]); x != 0 {
				at += bits.TrailingZeros64(x) >> 3
			} else {
				at = min(w.same(at+8, stride, limit), limit)
			}
		} else {
			at = min(w.same(at, stride, limit), limit)
		}
		lit, size := from-anchor, at-from-zstdMinCopy
		if 0 < lit && lit < zstdLitsAlone && size < zstdCopiesAlone && s.recent[0] == uint32(stride) && anchor+zstdLitSlack <= len(raw) {
			// All but the first of a column, and those after a long pause: no bits but the
			// codes'.
			*(*[zstdLitSlack]byte)(lits[n:]) = *(*[zstdLitSlack]byte)(raw[anchor:])
			n += lit
			anchor = at
			k := len(s.list)
			if k == cap(s.list) {
				s.list = slices.Grow(s.list, 1)
			}
			s.list = s.list[:k+1]
			s.list[k].extra = 0
			s.list[k].codes = uint64(lit)<<8 | uint64(size)<<16
			s.counts[zstdLit][lit&(fseCodes-1)]++
			s.counts[zstdCopy][size&(fseCodes-1)]++
			s.counts[zstdOffset][0]++
			continue
		}
		w.literals.bytes, w.anchor = lits[:n], anchor
		w.add(from, at-from, stride)
		anchor, n = w.anchor, len(w.literals.bytes)
	}
	w.literals.bytes, w.anchor = lits[:n], anchor
}
