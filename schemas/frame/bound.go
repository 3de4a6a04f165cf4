package frame

import (
	"encoding/binary"
	"math"

	"github.com/almanac-events/almanac/schemas"
)

// What a builder's events can come to when encoded, at most: whatever the bytes
// are, however little of them can be compressed, and however many strings turn out
// not to be valid UTF-8. The builder knows what it holds; only an event that is not
// in it yet is taken at its worst.

// MaxBytes returns the most bytes that the frame can have encoded, with one more
// event in it that has MaxRowBytes of more; 0 for none.
func (b *Builder) MaxBytes(more int) int {
	rows, attrs := len(b.ts), len(b.attrKey.ends)
	raw := b.headBytes + more + b.textBytes + b.textBytes/128 + // lengths from 128 on take a byte more, and from 128² on
		rows*(mostRowBytes+mostFieldBytes*len(b.fields)) + attrs*(2+maxKeyBytes(rows+attrs))
	return blockAt + zstdBound(raw)
}

// Fits says whether e can be added and the frame still has no more than
// MaxFrameBytes. An empty frame takes every event.
func (b *Builder) Fits(e *schemas.Event) bool {
	return len(b.ts) == 0 || b.MaxBytes(MaxRowBytes(b.topic, e.Bytes(), len(e.Attrs))) <= schemas.MaxFrameBytes
}

const (
	// mostRowBytes is ts, id, the attribute offset, three words' lengths and keys of
	// two bytes (of no more rows than MaxFrameRows), four texts' lengths, and the mark
	// of invalid text: a key of two bytes, or of four, and the column's name.
	mostRowBytes = 8 + 16 + 8 + 3*(1+2) + 4 + 4 + 1 + len(schemas.ColAttributes)
	// mostFieldBytes is a decimal, which is more than a word's length and key.
	mostFieldBytes = schemas.DecimalBytes
	// mostNumberText is the difference between the eight bytes that Event.Bytes
	// counts for a number and the longest text it can become, a time's of 35.
	mostNumberText = 27
	// mostLengths is what lengths of 128 bytes and more take beyond one byte each: two
	// for each of the seven texts, since an event has MaxEventBytes.
	mostLengths = 7 * 2
	// mostAttrBytes is a key of four bytes in the dictionary, the two lengths, and the number of a
	// name that comes again.
	mostAttrBytes = 4 + 2 + 3 + len("#256")
)

// maxKeyBytes is how wide a dictionary's keys are for n attributes and marks, and
// one more event.
func maxKeyBytes(n int) int {
	if n+schemas.MaxAttrs+1 > math.MaxUint16 {
		return 4
	}
	return 2
}

// MaxRowBytes is the most that an event with eventBytes (Event.Bytes) and so many
// attributes adds to a frame of t, before compression.
func MaxRowBytes(t *schemas.Topic, eventBytes, attrs int) int {
	return eventBytes + mostRowBytes + mostLengths + mostFieldBytes*len(t.Fields) + (mostAttrBytes+mostNumberText)*attrs
}

// mostHeadBytes is the lengths of a column's name and type, and the version, key
// width and two counts of a dictionary.
const mostHeadBytes = 2 + 1 + 4*8

// headBytes is the most that a frame of t has without rows: the counts, the
// columns' heads, and the word of the mark of invalid text.
func headBytes(t *schemas.Topic) int {
	n := 2*binary.MaxVarintLen64 + 2 + len(schemas.AttrInvalidUTF8)
	for _, c := range schemas.BaseColumns {
		n += mostHeadBytes + len(c.Name) + len(c.Type)
	}
	for _, f := range t.Fields {
		n += mostHeadBytes + len(f.Name) + len(f.Type.Wire())
	}
	return n
}
