package schemas

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// zstdMatches is where sequences of six bytes, and of twelve, last stood in the frame.
// What twelve found goes on for longer: the bench's events are 8 % smaller for it and
// take 5 to 10 % less time to compress and 12 to 20 % less to read, real logs are 2 %
// smaller, for 3 % more and 4 % less. With eight, ten or sixteen bytes in place of
// twelve the bench's are larger.
type zstdMatches struct {
	table [1 << zstdTableLog]uint32
	long  [1 << zstdTableLog]uint32
	shift uint8 // of a hash, which leaves as many bits as the frame needs
}

const (
	// zstdTableLog is that of the largest frames: with 14 they are half a per cent larger
	// and no sooner done, with 16 as large and later.
	zstdTableLog = 15
	// zstdLeastTableLog is that of the smallest frames, whose table is a kibibyte.
	zstdLeastTableLog = 8
	// zstdPrime6 spreads six bytes in the upper end of a word, as in the library of ZSTD.
	zstdPrime6 = 227718039650203
	// xxPrime1 and xxPrime2 are xxHash's.
	xxPrime1, xxPrime2 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F
	// zstdMargin is how many bytes of a frame's end no copy begins in, as it is looked
	// for by words.
	zstdMargin = 24
)

// begin empties the table for a frame of n bytes.
func (m *zstdMatches) begin(n int) {
	log := min(max(bits.Len(uint(n)), zstdLeastTableLog), zstdTableLog)
	m.shift = uint8(64 - log)
	clear(m.table[:1<<log])
	clear(m.long[:1<<log])
}

// zstdHash6 spreads a word's first six bytes, zstdHash12 all eight and the four behind.
func zstdHash6(word uint64) uint64 { return word << 16 * zstdPrime6 }
func zstdHash12(word uint64, tail uint32) uint64 {
	return (word*xxPrime1 ^ uint64(tail)*xxPrime2) * xxPrime1
}

// gather makes sequences of the text from at to limit.
func (w *zstdWriter) gather(at, limit int) {
	const last = 1<<zstdTableLog - 1
	s, raw, table, long, shift := &w.sequences, w.raw, &w.matches.table, &w.matches.long, w.matches.shift&63
	end := min(limit-zstdLeastCopy, len(raw)-zstdMargin)
	anchor, r := w.anchor, s.recent
	lits, n := w.literals.bytes[:cap(w.literals.bytes)], len(w.literals.bytes)
	list, k := s.list[:cap(s.list)], len(s.list)
	for at = max(at, zstdFarthestAtFirst); at < end; {
		here := raw[at : at+zstdMargin]
		word, next := binary.LittleEndian.Uint64(here), binary.LittleEndian.Uint64(here[1:])
		slot, far := &table[zstdHash6(word)>>shift&last], &long[zstdHash12(word, binary.LittleEndian.Uint32(here[8:]))>>shift&last]
		cand := int(*far)
		*far = uint32(at)
		// Where a line repeats but for a number in it, the last distances go on behind
		// that. They cost next to nothing and come before twelve bytes; but the very last
		// only where eight agree, and with four after them.
		x := word ^ binary.LittleEndian.Uint64(raw[at-int(r[1]):])
		if uint32(x) == 0 {
			*slot = uint32(at)
			cand = at - int(r[1])
		} else if x = word ^ binary.LittleEndian.Uint64(raw[at-int(r[2]):]); uint32(x) == 0 {
			*slot = uint32(at)
			cand = at - int(r[2])
		} else if x = next ^ binary.LittleEndian.Uint64(raw[at+1-int(r[0]):]); x == 0 {
			*slot = uint32(at)
			at++
			cand = at - int(r[0])
		} else if again := x; word == binary.LittleEndian.Uint64(raw[cand:]) {
			*slot = uint32(at)
			x = 0
		} else {
			slot1 := &table[zstdHash6(next)>>shift&last]
			cand = int(*slot)
			cand1 := int(*slot1)
			*slot, *slot1 = uint32(at), uint32(at+1)
			if x = again; uint32(x) == 0 {
				at++
				cand = at - int(r[0])
			} else if x = word ^ binary.LittleEndian.Uint64(raw[cand:]); uint32(x) != 0 {
				x = next ^ binary.LittleEndian.Uint64(raw[cand1:])
				if uint32(x) != 0 {
					at += 2 + (at-anchor)>>zstdSkipLog // past both, or they would find themselves
					continue
				}
				at++
				cand = cand1
			}
		}
		from := at
		for from > anchor && cand > 0 && raw[from-1] == raw[cand-1] {
			from--
			cand--
		}
		offset := uint32(from - cand)
		if x != 0 {
			at += bits.TrailingZeros64(x) >> 3
		} else if at += 8; at+8 <= len(raw) {
			if x = binary.LittleEndian.Uint64(raw[at:]) ^ binary.LittleEndian.Uint64(raw[at-int(offset):]); x != 0 {
				at += bits.TrailingZeros64(x) >> 3
			} else {
				at = w.same(at+8, int(offset), limit)
			}
		}
		at = min(at, limit)
		size := at - from - zstdMinCopy
		lit := from - anchor
		if lit <= zstdLitSlack {
			*(*[zstdLitSlack]byte)(lits[n:]) = *(*[zstdLitSlack]byte)(raw[anchor:])
		} else {
			copy(lits[n:], raw[anchor:from])
		}
		n += lit
		anchor = at
		value := offset + 3
		if offset == r[0] || offset == r[1] || offset == r[2] {
			value = r.at(offset, lit == 0)
		} else {
			r[0], r[1], r[2] = offset, r[0], r[1]
		}
		var l, c zstdCode
		if lit < len(zstdLits) {
			l = zstdLits[lit]
		} else {
			l = zstdLitCode(uint32(lit))
		}
		if size < len(zstdCopies) {
			c = zstdCopies[size]
		} else {
			c = zstdCopyCode(uint32(size))
		}
		o := uint32(bits.Len32(value) - 1)
		extra := uint64(value ^ 1<<(o&31))
		extra = extra<<(c.bits&63) | uint64(uint32(size)&(1<<(c.bits&31)-1))
		extra = extra<<(l.bits&63) | uint64(uint32(lit)&(1<<(l.bits&31)-1))
		if k == len(list) {
			list = slices.Grow(list, 1)
			list = list[:cap(list)]
		}
		list[k].extra = extra
		list[k].codes = uint64(o+uint32(c.bits)+uint32(l.bits)) | uint64(l.code)<<8 | uint64(c.code)<<16 | uint64(o)<<24
		k++
		s.counts[zstdLit][l.code&(fseCodes-1)]++
		s.counts[zstdOffset][o&(fseCodes-1)]++
		s.counts[zstdCopy][c.code&(fseCodes-1)]++
		if at < end {
			word := binary.LittleEndian.Uint64(raw[at-2:])
			table[zstdHash6(word)>>shift&last] = uint32(at - 2)
		}
	}
	w.anchor, s.recent, s.list = anchor, r, list[:k]
	w.literals.bytes = lits[:n]
}

// same is where what stands at at ends to be what stood offset before; at limit or
// after it at the latest.
func (w *zstdWriter) same(at, offset, limit int) int {
	raw := w.raw
	for at < limit {
		if at+8 > len(raw) {
			if raw[at] != raw[at-offset] {
				return at
			}
			at++
			continue
		}
		if x := binary.LittleEndian.Uint64(raw[at:]) ^ binary.LittleEndian.Uint64(raw[at-offset:]); x != 0 {
			return at + bits.TrailingZeros64(x)>>3
		}
		at += 8
	}
	return at
}

// zstdFarthestAtFirst is the farthest of the offsets a frame begins with.
const zstdFarthestAtFirst = 8

// zstdSkipLog is how many literals in a row make the search skip one more, in bits: what
// cannot be compressed is soon passed over. It is S2's.
const zstdSkipLog = 6

// zstdLeastCopy is the shortest copy that is looked for.
const zstdLeastCopy = 4
