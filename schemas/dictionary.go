package schemas

import (
	"encoding/binary"
	"math"
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
	index map[string]uint32
	keys  []uint32
	words []byte
}

// appendColumn writes version and data of a LowCardinality(String) column.
func (d *dictionary) appendColumn(raw []byte, c *textColumn) []byte {
	raw = binary.LittleEndian.AppendUint64(raw, lowCardVersion)
	return d.appendData(raw, c)
}

// appendData writes the data without the version. c must have rows.
func (d *dictionary) appendData(raw []byte, c *textColumn) []byte {
	if d.index == nil {
		d.index = make(map[string]uint32, 64)
	}
	clear(d.index)
	d.keys, d.words = d.keys[:0], d.words[:0]
	var start, prevStart, prevEnd, key uint32
	for i, end := range c.ends {
		word := c.buf[start:end]
		// Runs of one value are the usual case: spare them the map.
		if i == 0 || string(word) != string(c.buf[prevStart:prevEnd]) {
			k, ok := d.index[string(word)]
			if !ok {
				k = uint32(len(d.index))
				d.index[string(word)] = k
				d.words = binary.AppendUvarint(d.words, uint64(len(word)))
				d.words = append(d.words, word...)
			}
			key, prevStart, prevEnd = k, start, end
		}
		d.keys = append(d.keys, key)
		start = end
	}
	width := keyWidth(len(d.index))
	raw = binary.LittleEndian.AppendUint64(raw, uint64(width)|lowCardExtraBit|lowCardUpdateBit)
	raw = binary.LittleEndian.AppendUint64(raw, uint64(len(d.index)))
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
