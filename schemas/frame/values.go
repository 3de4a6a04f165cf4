package frame

import (
	"bytes"
	"encoding/binary"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// ColumnIndex returns the index of a column in the open frame, -1 if no column has that name.
func (r *Reader) ColumnIndex(name string) int {
	for c := range r.columns {
		if r.columns[c].Name == name {
			return c
		}
	}
	return -1
}

// Text is event i's value of a column of text, valid until the next Open.
func (r *Reader) Text(c, i int) []byte {
	col := &r.columns[c]
	if col.Type == kinds.WireLowCardinality {
		i = int(col.keys[i])
	}
	return r.raw[col.words.starts[i]:col.words.ends[i]]
}

// Bits are event i's value of a column of numbers or times, as the 64 bits it has there.
func (r *Reader) Bits(c, i int) uint64 {
	return binary.LittleEndian.Uint64(r.columns[c].fixed[8*i:])
}

// Truth is event i's value of a column of Bool.
func (r *Reader) Truth(c, i int) bool { return r.columns[c].fixed[i] != 0 }

// Attribute is the value of event i's first attribute of a name, valid until the
// next Open, and how many it has of that name.
func (r *Reader) Attribute(i int, key string) (value []byte, n int) {
	from := uint64(0)
	if i > 0 {
		from = r.attrEnd[i-1]
	}
	col := &r.columns[len(schemas.BaseColumns)-1]
	values := len(col.words.ends) - len(col.keys)
	for k := from; k < r.attrEnd[i]; k++ {
		at := col.keys[k]
		if !bytes.Equal(r.raw[col.words.starts[at]:col.words.ends[at]], []byte(key)) {
			continue
		}
		if n++; n == 1 {
			v := values + int(k)
			value = r.raw[col.words.starts[v]:col.words.ends[v]]
		}
	}
	return value, n
}

// Older returns the value that event i has of a field which came after the frame's schema version.
func (r *Reader) Older(f *schemas.Field, i int) (schemas.Attr, bool) {
	if r.topic.Kind == kinds.Document {
		body := r.Text(r.ColumnIndex(kinds.ColBody), i)
		return schemas.Older(f, func(name string) []byte { return schemas.BodyText(body, name) })
	}
	return schemas.Older(f, func(name string) []byte { text, _ := r.Attribute(i, name); return text })
}
