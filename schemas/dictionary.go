package schemas

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
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
	spans []span   // by key: where its word first stands
	next  []uint32 // by key: which key last came after it
	keys  []uint32
	words []byte
}

type span struct{ start, end uint32 }

// appendColumn writes version and data of a LowCardinality(String) column.
func (d *dictionary) appendColumn(raw []byte, c *textColumn) []byte {
	raw = binary.LittleEndian.AppendUint64(raw, lowCardVersion)
	return d.appendData(raw, c)
}

// appendData writes the data without the version. c must have rows.
func (d *dictionary) appendData(raw []byte, c *textColumn) []byte {
	d.reset(minSlots)
	var start, key uint32
	for i, end := range c.ends {
		word := c.buf[start:end]
		// Runs of one value and values in a fixed turn are the usual case: what came
		// last time after the value before is tried before the table.
		guess := uint32(0)
		if i > 0 {
			guess = d.next[key]
		}
		if i == 0 || string(word) != string(c.buf[d.spans[guess].start:d.spans[guess].end]) {
			guess = d.find(c, word, start, end)
		}
		if i > 0 {
			d.next[key] = guess
		}
		key = guess
		d.keys = append(d.keys, key)
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
	d.spans, d.next, d.keys, d.words = d.spans[:0], d.next[:0], d.keys[:0], d.words[:0]
}

// find is the key of word, which stands at c.buf[start:end]; a new one at need.
func (d *dictionary) find(c *textColumn, word []byte, start, end uint32) uint32 {
	mask := uint32(len(d.slots) - 1)
	at := uint32(hashWord(word)) & mask
	for ; d.slots[at] != 0; at = (at + 1) & mask {
		key := d.slots[at] - 1
		if s := d.spans[key]; string(word) == string(c.buf[s.start:s.end]) {
			return key
		}
	}
	key := uint32(len(d.spans))
	d.slots[at] = key + 1
	d.spans, d.next = append(d.spans, span{start, end}), append(d.next, key)
	d.words = binary.AppendUvarint(d.words, uint64(len(word)))
	d.words = append(d.words, word...)
	if 2*len(d.spans) > len(d.slots) {
		d.grow(c)
	}
	return key
}

// grow doubles the table.
func (d *dictionary) grow(c *textColumn) {
	d.slots = make([]uint32, 2*len(d.slots))
	mask := uint32(len(d.slots) - 1)
	for key, s := range d.spans {
		at := uint32(hashWord(c.buf[s.start:s.end])) & mask
		for d.slots[at] != 0 {
			at = (at + 1) & mask
		}
		d.slots[at] = uint32(key) + 1
	}
}

// hashSeed keeps whoever chooses the words from choosing what collides.
var hashSeed = rand.Uint64()

// hashWord is a hash for words of some bytes: the whole word, eight bytes at a
// time, each through mix.
func hashWord(w []byte) uint64 {
	h := hashSeed ^ uint64(len(w))
	for ; len(w) >= 8; w = w[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(w))
	}
	var tail uint64
	for i, c := range w {
		tail |= uint64(c) << (8 * i)
	}
	return mix(h ^ tail)
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
