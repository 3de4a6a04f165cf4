package schemas

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// zstdSequence is some literals and a copy of what came before (RFC 8878,
// 3.1.1.3.2.1), as it is encoded: its three codes, and the bits that follow them, those
// of the literals' count lowest, then of the copy's length, then of its offset. A
// block's lengths take 16 bits at most, an offset within MaxFrameRawBytes 23.
type zstdSequence struct {
	extra uint64
	codes uint64 // from the lowest byte: how many bits extra has, the codes of literals, copy and offset
}

const (
	zstdMinCopy = 3 // the shortest copy
	// zstdSequenceBytes is the most a sequence takes: its bits and those of three states.
	zstdSequenceBytes = 12
)

// zstdCode is a length's code and how many bits follow it.
type zstdCode struct{ code, bits uint8 }

// The codes of short lengths: literals below 64, and copies below 128, counted from
// zstdMinCopy (RFC 8878, 3.1.1.3.2.1.1). Of longer ones each power of two has one.
var (
	zstdLits = func() (codes [64]zstdCode) {
		return [64]zstdCode(zstdCodes(codes[:], zstdLitsAlone, []uint8{1, 1, 1, 1, 2, 2, 3, 3, 4}))
	}()
	zstdCopies = func() (codes [128]zstdCode) {
		return [128]zstdCode(zstdCodes(codes[:], zstdCopiesAlone, []uint8{1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5}))
	}()
)

// Lengths below that are codes of their own.
const (
	zstdLitsAlone   = 16
	zstdCopiesAlone = 32
)

// Codes of lengths from there on, less the exponent.
const (
	zstdLongLits   = 25 - 6 // 64 has code 25
	zstdLongCopies = 43 - 7 // 128 + 3 has code 43
)

// zstdCodes fills in the codes of lengths from 0 on, of which those below alone are
// codes of their own, and each later code has the bits given.
func zstdCodes(codes []zstdCode, alone int, bits []uint8) []zstdCode {
	for i := range alone {
		codes[i] = zstdCode{uint8(i), 0}
	}
	at := alone
	for i, n := range bits {
		for range 1 << n {
			codes[at] = zstdCode{uint8(alone + i), n}
			at++
		}
	}
	return codes
}

// zstdPredefined are the tables that need no description (RFC 8878, 3.1.1.3.2.2).
var zstdPredefined = func() (t [3]fseTable) {
	t[zstdLit].build([]int16{4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1}, 6)
	t[zstdOffset].build([]int16{1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1}, 5)
	t[zstdCopy].build([]int16{1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
		1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}, 6)
	return t
}()

// A sequence's three codes, in the order of their tables.
const (
	zstdLit = iota
	zstdOffset
	zstdCopy
)

// How a table is given (RFC 8878, 3.1.1.3.2.1).
const (
	zstdModePredefined = 0
	zstdModeSingle     = 1 // RLE_Mode
	zstdModeFitted     = 2 // FSE_Compressed_Mode
)

// zstdFewSequences is how many are not worth tables of their own, whose descriptions
// take some 30 bytes.
const zstdFewSequences = 48

// zstdRecent are the offsets of the last copies, Repeated_Offset1 to 3, which have codes
// of their own.
type zstdRecent [3]uint32

// zstdSequences gathers a block's sequences and writes them.
type zstdSequences struct {
	list   []zstdSequence
	counts [3][fseCodes]uint32
	recent zstdRecent
	before zstdRecent // those before the block
	fitted [3]fseTable
}

// begin is a frame's: the offsets a decoder begins with (RFC 8878, 3.1.1.5).
func (s *zstdSequences) begin() { s.before = zstdRecent{1, 4, zstdFarthestAtFirst} }

// kept is that whoever reads the frame has the block's offsets.
func (s *zstdSequences) kept() { s.before = s.recent }

// reset is a block's of at most n bytes.
func (s *zstdSequences) reset(n int) {
	s.recent = s.before
	s.list = slices.Grow(s.list[:0], n/zstdUsualSequence)
	s.counts = [3][fseCodes]uint32{}
}

// zstdUsualSequence is how many bytes a sequence of usual events makes, at least.
const zstdUsualSequence = 10

// appendTo writes the block's sequences section (RFC 8878, 3.1.1.3.2).
func (s *zstdSequences) appendTo(out []byte) []byte {
	n := len(s.list)
	switch {
	case n == 0:
		return append(out, 0)
	case n < 128:
		out = append(out, byte(n))
	case n < 0x7f00:
		out = append(out, byte(n>>8)+128, byte(n))
	default:
		out = append(out, 255, byte(n-0x7f00), byte((n-0x7f00)>>8))
	}
	modes := len(out)
	out = append(out, 0)
	var tables [3]*fseTable
	for i := range tables {
		var mode uint8
		tables[i], mode, out = s.table(i, out)
		out[modes] |= mode << (6 - 2*i)
	}
	return appendSequences(out, s.list, tables[zstdLit], tables[zstdOffset], tables[zstdCopy])
}

// table chooses the table of one of the codes, and writes its description.
func (s *zstdSequences) table(i int, out []byte) (*fseTable, uint8, []byte) {
	n, counts, codes, most := len(s.list), &s.counts[i], 0, uint32(0)
	last := 0
	for code, count := range counts {
		if count != 0 {
			codes++
			last = code
			most = max(most, count)
		}
	}
	t := &s.fitted[i]
	switch {
	case int(most) == n:
		t.single(uint8(last))
		return t, zstdModeSingle, append(out, byte(last))
	case n < zstdFewSequences:
		return &zstdPredefined[i], zstdModePredefined, out
	}
	log := fseLog(n, codes)
	var room [fseCodes]int16
	shares := fseShares(&room, counts, n, log)
	t.build(shares, log)
	return t, zstdModeFitted, appendShares(out, shares, log)
}

// fseMasks have the low bits of a state.
var fseMasks = [16]uint32{0, 1, 3, 7, 15, 31, 63, 127, 255}

// appendSequences writes the sequences' bits, from the last to the first, as they are
// read from the end (RFC 8878, 3.1.1.3.2.1.2 and 4.1).
func appendSequences(out []byte, list []zstdSequence, lits, offsets, copies *fseTable) []byte {
	at := len(out)
	out = slices.Grow(out, zstdSequenceBytes*len(list)+16)
	buf := out[:cap(out)]
	last := &list[len(list)-1]
	lit, copied, offset := lits.start(uint8(last.codes>>8)), copies.start(uint8(last.codes>>16)), offsets.start(uint8(last.codes>>24))
	acc, n := last.extra, uint(uint8(last.codes))
	for i := len(list) - 2; i >= 0; i-- {
		binary.LittleEndian.PutUint64(buf[at:], acc)
		at += int(n >> 3)
		acc >>= n & 56
		n &= 7
		s := list[i]
		sym := &offsets.symbols[s.codes>>24&(fseCodes-1)]
		size := (offset + sym.deltaBits) >> 16 & 15
		acc |= uint64(offset&fseMasks[size]) << (n & 63)
		n += uint(size)
		offset = uint32(offsets.states[uint8(offset>>size+uint32(sym.deltaState))])
		sym = &copies.symbols[s.codes>>16&(fseCodes-1)]
		size = (copied + sym.deltaBits) >> 16 & 15
		acc |= uint64(copied&fseMasks[size]) << (n & 63)
		n += uint(size)
		copied = uint32(copies.states[uint8(copied>>size+uint32(sym.deltaState))])
		sym = &lits.symbols[s.codes>>8&(fseCodes-1)]
		size = (lit + sym.deltaBits) >> 16 & 15
		acc |= uint64(lit&fseMasks[size]) << (n & 63)
		n += uint(size)
		lit = uint32(lits.states[uint8(lit>>size+uint32(sym.deltaState))])
		if n+uint(uint8(s.codes)) >= 64 {
			binary.LittleEndian.PutUint64(buf[at:], acc)
			at += int(n >> 3)
			acc >>= n & 56
			n &= 7
		}
		acc |= s.extra << (n & 63)
		n += uint(uint8(s.codes))
	}
	binary.LittleEndian.PutUint64(buf[at:], acc)
	at += int(n >> 3)
	acc >>= n & 56
	n &= 7
	for _, end := range [3]struct {
		t     *fseTable
		state uint32
	}{{copies, copied}, {offsets, offset}, {lits, lit}} {
		acc |= uint64(end.state&fseMasks[end.t.log&15]) << (n & 63)
		n += uint(end.t.log)
	}
	acc |= 1 << (n & 63) // the mark of the end
	binary.LittleEndian.PutUint64(buf[at:], acc)
	return out[:at+int(n>>3)+1]
}

// zstdLitCode and zstdCopyCode are the codes of any length within a block.
func zstdLitCode(n uint32) zstdCode {
	if n < uint32(len(zstdLits)) {
		return zstdLits[n]
	}
	exp := uint8(bits.Len32(n) - 1)
	return zstdCode{exp + zstdLongLits, exp}
}

func zstdCopyCode(n uint32) zstdCode {
	if n < uint32(len(zstdCopies)) {
		return zstdCopies[n]
	}
	exp := uint8(bits.Len32(n) - 1)
	return zstdCode{exp + zstdLongCopies, exp}
}

// put appends a sequence by its codes and what they are of. The list has room.
func (s *zstdSequences) put(l zstdCode, lit uint32, c zstdCode, size, value uint32) {
	o := uint32(bits.Len32(value) - 1)
	extra := uint64(value ^ 1<<(o&31))
	extra = extra<<(c.bits&63) | uint64(size&(1<<(c.bits&31)-1))
	extra = extra<<(l.bits&63) | uint64(lit&(1<<(l.bits&31)-1))
	if len(s.list) == cap(s.list) {
		s.list = slices.Grow(s.list, 1)
	}
	n := len(s.list)
	s.list = s.list[:n+1]
	at := &s.list[n]
	// Two words and no smaller fields: the copy of a struct that was just written field
	// by field costs more than all the rest.
	at.extra = extra
	at.codes = uint64(o+uint32(c.bits)+uint32(l.bits)) | uint64(l.code)<<8 | uint64(c.code)<<16 | uint64(o)<<24
	s.counts[zstdLit][l.code&(fseCodes-1)]++
	s.counts[zstdOffset][o&(fseCodes-1)]++
	s.counts[zstdCopy][c.code&(fseCodes-1)]++
}

// at is the offset's value, with 3 added unless it is one of the recent ones, which it
// joins (RFC 8878, 3.1.1.5).
func (r *zstdRecent) at(offset uint32, noLits bool) uint32 {
	value := offset + 3
	switch {
	case offset == r[0] && noLits: // there is no code for it
		r[1], r[2] = r[0], r[1]
		return value
	case offset == r[0]:
		return 1
	case offset == r[1]:
		value = 2
		r[0], r[1] = r[1], r[0]
	case offset == r[2]:
		value = 3
		r[0], r[1], r[2] = r[2], r[0], r[1]
	default:
		r[0], r[1], r[2] = offset, r[0], r[1]
		return value
	}
	if noLits {
		value-- // without literals the second comes first
	}
	return value
}
