package frame

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/almanac-events/almanac/schemas/internal/splitmix"
)

// ClickHouse's serialization of LowCardinality in the Native format: a version,
// then per block the key width and two flags, the dictionary, and one key a row.
const (
	lowCardVersion   = 1
	lowCardKeyMask   = 0xff
	lowCardExtraBit  = 1 << 9
	lowCardUpdateBit = 1 << 10
)

// dictionary builds the LowCardinality form of a text column. Its buffers serve
// one column after the other.
type dictionary struct {
	slots []uint32 // an open hash table of keys + 1
	marks []mark   // by key
	spans []span   // by key: where its word first stands
	keys  []uint32
	words []byte
}

type span struct{ start, end uint32 }

// mark tells words apart: one of up to shortWord bytes is its mark, a longer one
// has its hash and may share it.
type mark uint64

const (
	shortWord = 7                // a mark has eight bytes, and a length in one of them
	longMark  = mark(0xff) << 56 // where a short word's length stands
)

// appendColumn writes version and data of a LowCardinality(String) column.
func (d *dictionary) appendColumn(raw []byte, c *textColumn) []byte {
	raw = binary.LittleEndian.AppendUint64(raw, lowCardVersion)
	return d.appendData(raw, c)
}

// appendData writes the data without the version. c must have rows. The next word cannot be
// predicted, so no branch asks for it: nearly always the table has it at
// once.
func (d *dictionary) appendData(raw []byte, c *textColumn) []byte {
	d.reset(minSlots)
	d.keys = slices.Grow(d.keys, len(c.ends))[:len(c.ends)]
	var start uint32
	for i, end := range c.ends {
		m := markOf(c.buf, start, end)
		key := d.slots[m.hash()&uint32(len(d.slots)-1)] - 1 // of no key: above all
		if key >= uint32(len(d.marks)) || d.marks[key] != m || m >= longMark && !d.same(c, key, start, end) {
			key = d.find(c, m, start, end)
		}
		d.keys[i] = key
		start = end
	}
	width := keyWidth(len(d.spans))
	raw = binary.LittleEndian.AppendUint64(raw, uint64(width)|lowCardExtraBit|lowCardUpdateBit)
	raw = binary.LittleEndian.AppendUint64(raw, uint64(len(d.spans)))
	raw = append(raw, d.words...)
	raw = binary.LittleEndian.AppendUint64(raw, uint64(len(d.keys)))
	switch width {
	case 0:
		for _, k := range d.keys {
			raw = append(raw, byte(k))
		}
	case 1:
		for _, k := range d.keys {
			raw = binary.LittleEndian.AppendUint16(raw, uint16(k))
		}
	default:
		for _, k := range d.keys {
			raw = binary.LittleEndian.AppendUint32(raw, k)
		}
	}
	return raw
}

// minSlots is the table's first size: no frame of usual events needs more.
const minSlots = 256

// reset empties the dictionary and gives the table n slots, a power of two.
func (d *dictionary) reset(n int) {
	if cap(d.slots) < n {
		d.slots = make([]uint32, n)
	}
	d.slots = d.slots[:n]
	clear(d.slots)
	d.marks, d.spans, d.keys, d.words = d.marks[:0], d.spans[:0], d.keys[:0], d.words[:0]
}

// find is the key of the word at c.buf[start:end]; a new one at need.
func (d *dictionary) find(c *textColumn, m mark, start, end uint32) uint32 {
	mask := uint32(len(d.slots) - 1)
	at := m.hash() & mask
	for ; d.slots[at] != 0; at = (at + 1) & mask {
		key := d.slots[at] - 1
		if d.marks[key] == m && (m < longMark || d.same(c, key, start, end)) {
			return key
		}
	}
	key := uint32(len(d.spans))
	d.slots[at] = key + 1
	d.marks, d.spans = append(d.marks, m), append(d.spans, span{start, end})
	d.words = binary.AppendUvarint(d.words, uint64(end-start))
	d.words = append(d.words, c.buf[start:end]...)
	if 2*len(d.spans) > len(d.slots) {
		d.grow()
	}
	return key
}

// same says whether the word at c.buf[start:end] is key's.
func (d *dictionary) same(c *textColumn, key, start, end uint32) bool {
	s := d.spans[key]
	return string(c.buf[start:end]) == string(c.buf[s.start:s.end])
}

// grow doubles the table.
func (d *dictionary) grow() {
	d.slots = make([]uint32, 2*len(d.slots))
	mask := uint32(len(d.slots) - 1)
	for key, m := range d.marks {
		at := m.hash() & mask
		for d.slots[at] != 0 {
			at = (at + 1) & mask
		}
		d.slots[at] = uint32(key) + 1
	}
}

// markOf is the mark of the word at buf[start:end].
func markOf(buf []byte, start, end uint32) mark {
	n := end - start
	if n > shortWord {
		return mark(hashWord(buf[start:end])) | longMark
	}
	if from := buf[start:]; len(from) >= 8 {
		return mark(binary.LittleEndian.Uint64(from)&(1<<(8*n)-1) | uint64(n)<<56)
	}
	m := uint64(n) << 56
	for i, c := range buf[start:end] {
		m |= uint64(c) << (8 * i)
	}
	return mark(m)
}

// hash is where a mark's search of the table begins.
func (m mark) hash() uint32 { return uint32(splitmix.Mix(uint64(m) ^ hashSeed)) }

// hashSeed keeps a client that chooses the words from choosing what collides.
var hashSeed = rand.Uint64()

// hashWord is a hash for words of some bytes: the whole word, eight bytes at a
// time, each through mix.
func hashWord(w []byte) uint64 {
	h := hashSeed ^ uint64(len(w))
	for ; len(w) >= 8; w = w[8:] {
		h = splitmix.Mix(h ^ binary.LittleEndian.Uint64(w))
	}
	var tail uint64
	for i, c := range w {
		tail |= uint64(c) << (8 * i)
	}
	return splitmix.Mix(h ^ tail)
}

// keyWidth is ClickHouse's code of the smallest key type for n words: 0 is one
// byte, 1 two, 2 four.
func keyWidth(n int) int {
	switch {
	case n <= math.MaxUint8+1:
		return 0
	case n <= math.MaxUint16+1:
		return 1
	default:
		return 2
	}
}
