package schemas

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// zstdMatches is where sequences of six bytes last stood in the frame.
type zstdMatches struct {
	table [1 << zstdTableLog]uint32
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
	// zstdMargin is how many bytes of a frame's end no copy begins in, as it is looked
	// for by words.
	zstdMargin = 24
)

// begin empties the table for a frame of n bytes.
func (m *zstdMatches) begin(n int) {
	log := min(max(bits.Len(uint(n)), zstdLeastTableLog), zstdTableLog)
	m.shift = uint8(64 - log)
	clear(m.table[:1<<log])
}

// gather makes sequences of the text from at to limit.
func (w *zstdWriter) gather(at, limit int) {
	s, raw, table, shift := &w.sequences, w.raw, &w.matches.table, w.matches.shift&63
	end := min(limit-zstdLeastCopy, len(raw)-zstdMargin)
	anchor, r := w.anchor, s.recent
	lits, n := w.literals.bytes[:cap(w.literals.bytes)], len(w.literals.bytes)
	list, k := s.list[:cap(s.list)], len(s.list)
	for at = max(at, zstdFarthestAtFirst); at < end; {
		here := raw[at : at+zstdMargin]
		word, next := binary.LittleEndian.Uint64(here), binary.LittleEndian.Uint64(here[1:])
		slot, slot1 := &table[word<<16*zstdPrime6>>shift&(1<<zstdTableLog-1)], &table[next<<16*zstdPrime6>>shift&(1<<zstdTableLog-1)]
		cand, cand1 := int(*slot), int(*slot1)
		*slot, *slot1 = uint32(at), uint32(at+1)
		// Where a line repeats but for a number in it, the last distances go on behind that.
		x := word ^ binary.LittleEndian.Uint64(raw[at-int(r[1]):])
		if uint32(x) == 0 {
			cand = at - int(r[1])
		} else if x = word ^ binary.LittleEndian.Uint64(raw[at-int(r[2]):]); uint32(x) == 0 {
			cand = at - int(r[2])
		} else if x = next ^ binary.LittleEndian.Uint64(raw[at+1-int(r[0]):]); uint32(x) == 0 {
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
			table[word<<16*zstdPrime6>>shift&(1<<zstdTableLog-1)] = uint32(at - 2)
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
